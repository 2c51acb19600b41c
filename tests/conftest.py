"""Settings of hypothesis for all tests: a loaded machine must not fail what is right."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "byocviz", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("byocviz")
