"""Findings on the nodes of ONNX Runtime's sessions."""
