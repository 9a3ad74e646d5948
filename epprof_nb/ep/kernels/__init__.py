"""Kernels of ONNX operators that come with the package, one family per file."""

from epprof_nb.ep.kernels import (
    convolution,
    elementwise,
    linear,
    normalization,
    pooling,
    reduction,
    shape,
)

__all__ = [
    "convolution",
    "elementwise",
    "linear",
    "normalization",
    "pooling",
    "reduction",
    "shape",
]
