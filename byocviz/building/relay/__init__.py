"""Builds a partitioned Relay module and runs it, where TVM has Relay (0.19 and older)."""
