"""The ONNX Runtime recorder: events of observed sessions, their runs and nodes."""
