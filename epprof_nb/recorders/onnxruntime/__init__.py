"""The ONNX Runtime recorder: observed sessions, their runs and nodes."""
