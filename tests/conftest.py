"""What tests share: hypothesis' settings, one Chromium a process, and which cases are run.

The largest families of cases (a property over every module of a corpus) are thinned: every so
maniest case of each is run; what takes minutes by itself is left out. ``--full`` runs all.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.browser import FLAGS, VIEWER, chromium

# A loaded machine must not fail what is right. The same examples each time: what is new is looked
# for with --full, not by whoever changed something else.
settings.register_profile(
    "byocviz",
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    derandomize=True,
)
settings.register_profile("full", settings.get_profile("byocviz"), derandomize=False)


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job leaves interrupts unheeded; some tests are about them.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="slow tests and thinned cases too")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("full" if config.getoption("--full") else "byocviz")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--full"):
        return
    seen: Counter[str] = Counter()
    left, kept = [], []
    for item in items:
        if item.get_closest_marker("slow"):
            left.append(item)
            continue
        marker = item.get_closest_marker("thinned")
        family = item.nodeid.partition("[")[0]
        place = seen[family]
        seen[family] += 1
        (left if marker and place % marker.args[0] else kept).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


@pytest.fixture(scope="session")
def built() -> None:
    """The bundle, built where it is missing or older than its sources. One of several pytest
    processes builds; the others wait."""
    import fcntl

    from byocviz.viewer.hatch_build import build, fresh

    with open(VIEWER / ".build.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not fresh(VIEWER) or not (VIEWER / "node_modules").is_dir():
            build(VIEWER)


@pytest.fixture(scope="session")
def browser(built: None) -> Iterator[Any]:
    """Playwright's own loop is one a process: whoever needs a browser shares this one."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield started
        started.close()
