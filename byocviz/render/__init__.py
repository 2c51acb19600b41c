"""Recordings made visible. Imports no TVM."""
