"""Convolutions with few channels per group on CUDA devices, in one launch with their bias.

Each thread computes one element of the result. A matrix product over the windows would first write
each window to memory, and its matrices would have few rows: one per group in a depthwise
convolution.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.ep.kernels.cuda import types as cuda_types
from epprof_nb.ep.kernels.cuda.grids import THREADS, grid_of
from epprof_nb.ep.kernels.cuda.index_width import MOST_32_BIT

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, ArrayModule
    from epprof_nb.ep.kernels.shared.windows import Geometry

_CODE = """
extern "C" __global__ void NAME(const T* x, const T* weight, const T* bias, T* y, int n,
                                int channels, int depth, int per_group, int h, int w, int oh,
                                int ow, int sh, int sw, int dh, int dw, int ph, int pw) {
  int step = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    int rest = i, left = rest % ow * sw - pw;
    rest /= ow;
    int top = rest % oh * sh - ph;
    rest /= oh;
    int channel = rest % channels;
    rest /= channels;
    int group = channel / per_group;
    const T* image = x + (rest * (channels / per_group) + group) * depth * h * w;
    const T* factors = weight + channel * depth * KH * KW;
    A sum = 0;
    for (int c = 0; c < depth; c++, image += h * w, factors += KH * KW) {
      #pragma unroll
      for (int p = 0; p < KH; p++) {
        int row = top + p * dh;
        if (row < 0 || row >= h) continue;
        #pragma unroll
        for (int q = 0; q < KW; q++) {
          int column = left + q * dw;
          if (column < 0 || column >= w) continue;
          sum += wide(image[row * w + column]) * wide(factors[p * KW + q]);
        }
      }
    }
    write(&y[i], bias ? sum + wide(bias[channel]) : sum);
  }
}
"""

_MOST_PRODUCTS = 64
"""Most products per element of the result."""


def takes_few_products(x: Array, weight: Array, groups: int, positions: tuple[int, ...]) -> bool:
    """Whether `convolve` is faster for a convolution of images than a matrix product."""
    products = math.prod(weight.shape[1:])
    size = x.shape[0] * weight.shape[0] * math.prod(positions)
    if products > _MOST_PRODUCTS or not 0 < max(size, x.size) < MOST_32_BIT:
        return False
    return groups > 1 or math.prod(weight.shape[2:]) > 1  # otherwise an image is already a matrix


def convolve(  # noqa: PLR0917 - a convolution has as many
    xp: ArrayModule,
    x: Array, weight: Array, bias: Array | None,
    groups: int, geometry: Geometry,
    out: Array,
) -> None:  # fmt: skip
    """Write a convolution of images.

    Parameters
    ----------
    xp
        CuPy.
    x
        Contiguous array of shape (batch, channels, height, width), of a floating-point dtype.
    weight
        Array of shape (channels of the result, channels / groups, height, width of a window).
    bias
        One number per channel of the result; None for 0.
    groups
        Number of groups of channels; it divides the numbers of channels.
    geometry
        The windows.
    out
        Gets the result: a contiguous array.
    """
    channels, depth, *window = weight.shape
    begins = tuple(before for before, _ in geometry.pads)
    sizes = _sizes((
        out.size, channels, depth, channels // groups, *x.shape[2:], *out.shape[2:],
        *geometry.strides, *geometry.dilations, *begins,
    ))  # fmt: skip
    kernel = _kernel(xp, x.dtype.name, *window)
    grid = grid_of(out.size)
    added = np.uint64(0) if bias is None else bias
    _native.ep_launch(kernel, grid, (THREADS,), (x, weight, added, out, *sizes))


@lru_cache(maxsize=4096)
def _sizes(numbers: tuple[int, ...]) -> tuple[np.int32, ...]:
    return tuple(map(np.int32, numbers))


@cache
def _kernel(xp: ArrayModule, dtype: str, height: int, width: int) -> Any:  # noqa: ANN401
    # The loops over a window are unrolled, so that its size is part of the code.
    name = f"ep_convolve_{height}x{width}"
    code = _CODE.replace("NAME", name).replace("KH", str(height)).replace("KW", str(width))
    return xp.RawKernel(cuda_types.preamble(dtype) + code, name)
