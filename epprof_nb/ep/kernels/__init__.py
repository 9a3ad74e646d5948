"""Kernels of ONNX operators that come with the package, one family per file."""

from epprof_nb.ep.kernels import elementwise

__all__ = ["elementwise"]
