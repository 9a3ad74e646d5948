"""ONNX Runtime: observed sessions, their runs and CUDA graphs, and what a profile tells of them.

The public names are in `epprof_nb.onnxruntime`.
"""
