"""Windows of images as the columns of a matrix, on CUDA devices, with one launch."""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.ep.kernels.cuda.grids import THREADS, grid_of
from epprof_nb.ep.kernels.cuda.index_width import MOST_32_BIT
from epprof_nb.ep.kernels.cuda.scratch import scratch

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, ArrayModule
    from epprof_nb.ep.kernels.shared.windows import Geometry

_CODE = """
extern "C" __global__ void NAME(const T* x, T* y, int n, int h, int w, int kh, int kw, int oh,
                                int ow, int sh, int sw, int dh, int dw, int ph, int pw) {
  int step = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    int rest = i, column = rest % ow * sw - pw;
    rest /= ow;
    int row = rest % oh * sh - ph;
    rest /= oh;
    column += rest % kw * dw;
    rest /= kw;
    row += rest % kh * dh;
    bool inside = row >= 0 && row < h && column >= 0 && column < w;
    y[i] = inside ? x[(rest / kh * h + row) * w + column] : T(0);
  }
}
"""
_TYPES = {2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}


def columns(
    xp: ArrayModule, x: Array, geometry: Geometry, positions: tuple[int, ...]
) -> Array | None:
    """Return the windows of each channel as columns, with zeros around the image.

    Parameters
    ----------
    xp
        CuPy.
    x
        Contiguous array of shape (batch, channels, height, width), of a floating-point dtype.
    geometry
        The windows.
    positions
        Number of windows along each axis.

    Returns
    -------
    columns
        Array of shape (batch, channels * window, positions): `x` itself, reshaped, if each window
        is one element, or else memory that only the launches of the node may use. None if the array
        has other axes or too many elements.
    """
    if len(positions) != 2:
        return None
    batch, channels = x.shape[:2]
    window, count = math.prod(geometry.kernel), math.prod(positions)
    shape = (batch, channels * window, count)
    if window == 1 and positions == x.shape[2:] and set(geometry.strides) == {1}:
        return x.reshape(shape)
    n = math.prod(shape)
    if not 0 < max(n, x.size) < MOST_32_BIT:
        return None
    y = scratch(xp, shape, x.dtype)
    begins = tuple(before for before, _ in geometry.pads)
    sizes = _sizes((
        n, *x.shape[2:], *geometry.kernel, *positions, *geometry.strides, *geometry.dilations,
        *begins,
    ))  # fmt: skip
    grid = grid_of(n)
    _native.ep_launch(_kernel(xp, x.dtype.itemsize), grid, (THREADS,), (x, y, *sizes))
    return y


@lru_cache(maxsize=4096)
def _sizes(numbers: tuple[int, ...]) -> tuple[np.int32, ...]:
    return tuple(map(np.int32, numbers))


@cache
def _kernel(xp: ArrayModule, itemsize: int) -> Any:  # noqa: ANN401
    name = f"ep_columns_{8 * itemsize}"
    return xp.RawKernel(f"typedef {_TYPES[itemsize]} T;\n" + _CODE.replace("NAME", name), name)
