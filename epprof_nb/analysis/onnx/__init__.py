"""Runs, nodes and operators of ONNX Runtime sessions."""
