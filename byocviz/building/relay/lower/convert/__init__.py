"""Relay's converters, grouped by the kind of operator. Each file registers its own."""
