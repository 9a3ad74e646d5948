"""The recorder of ONNX Runtime sessions: their runs and nodes as ops."""
