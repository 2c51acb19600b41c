"""Builds a partitioned module and runs it: subgraphs to ONNX, ONNX to a runtime's engines."""
