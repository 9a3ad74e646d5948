"""Copies of strided views on CUDA devices, with one launch of a raw kernel each."""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.ep.kernels.cuda.grids import THREADS, grid_of
from epprof_nb.ep.kernels.cuda.index_width import MOST_32_BIT

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, ArrayModule

_CODE = """
extern "C" __global__ void NAME(const T* x, T* y, long long start, int n, int d1, int d2, int d3,
                                int s0, int s1, int s2, int s3) {
  x += start;
  int step = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    int rest = i, place = rest % d3 * s3;
    rest /= d3;
    place += rest % d2 * s2;
    rest /= d2;
    place += rest % d1 * s1;
    y[i] = x[place + rest / d1 * s0];
  }
}
"""
_PART_CODE = """
extern "C" __global__ void NAME(const T* x, T* y, long long start, N n, N width, N pitch) {
  N step = (N)gridDim.x * blockDim.x;
  y += start;
  for (N i = (N)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    y[(long long)(i / width) * pitch + i % width] = x[i];
  }
}
"""
_TYPES = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}
_RANK = 4


def write(xp: ArrayModule, x: Array, view: Array, out: Array) -> bool:
    """Copy the elements of a view into a contiguous array of its shape.

    Parameters
    ----------
    xp
        Array module.
    x
        Contiguous array.
    view
        Part of it, with any strides.
    out
        Gets the elements, converted as in an assignment if the dtype or shape differs.

    Returns
    -------
    is_launch
        Whether the copy is a launch of a raw kernel, or there is nothing to copy.
    """
    if xp is not np and view.size and (view.shape, view.dtype) == (out.shape, out.dtype):
        sizes = _sizes(view.shape, view.strides, view.dtype.itemsize)
        if sizes is not None:
            n = view.size
            grid = grid_of(n)
            start = np.int64((view.data.ptr - x.data.ptr) // view.dtype.itemsize)
            kernel = _kernel(xp, view.dtype.itemsize)
            _native.ep_launch(kernel, grid, (THREADS,), (x, out, start, *sizes))
            return True
    out[...] = view
    return not out.size


@lru_cache(maxsize=4096)
def _sizes(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[np.int32, ...] | None:
    """Return the arguments that describe a view: its size, and sizes and steps of its axes.

    Axes that are one range of memory are joined. None if four are not enough, or the view spans
    too many elements.
    """
    axes: list[tuple[int, int]] = []
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if axes and axes[-1][1] == size * stride:
            axes[-1] = (axes[-1][0] * size, stride)
        else:
            axes.append((size, stride))
    span = sum((size - 1) * abs(stride) for size, stride in axes) // itemsize
    count = int(np.prod(shape, dtype=np.int64))
    if len(axes) > _RANK or itemsize not in _TYPES or max(span, count) >= MOST_32_BIT:
        return None
    axes = [(1, 0)] * (_RANK - len(axes)) + axes
    steps = [stride // itemsize for _, stride in axes]
    return tuple(map(np.int32, (count, *(size for size, _ in axes[1:]), *steps)))


@cache
def _kernel(xp: ArrayModule, itemsize: int) -> Any:  # noqa: ANN401
    name = f"ep_copy_{8 * itemsize}"
    return xp.RawKernel(f"typedef {_TYPES[itemsize]} T;\n" + _CODE.replace("NAME", name), name)


def write_part(xp: ArrayModule, x: Array, out: Array, axis: int, start: int) -> None:
    """Copy an array into a part of an array along an axis.

    Parameters
    ----------
    xp
        CuPy.
    x
        Contiguous array of the dtype of `out`, with elements.
    out
        Contiguous array of the same shape except for the axis.
    axis
        Number of the axis, from 0.
    start
        Index of the first element of the part along the axis.
    """
    n, inner = x.size, math.prod(x.shape[axis + 1 :])
    width, pitch = x.shape[axis] * inner, out.shape[axis] * inner
    few = max(n, pitch) < MOST_32_BIT
    kind = np.uint32 if few else np.int64
    _native.ep_launch(
        _part_kernel(xp, x.dtype.itemsize, few),
        grid_of(n), (THREADS,),
        (x, out, np.int64(start * inner), kind(n), kind(width), kind(pitch)),
    )  # fmt: skip


@cache
def _part_kernel(xp: ArrayModule, itemsize: int, few: bool) -> Any:  # noqa: ANN401, FBT001
    name = f"ep_part_{8 * itemsize}_{'few' if few else 'many'}"
    types = f"typedef {_TYPES[itemsize]} T;\ntypedef {'unsigned int' if few else 'long long'} N;\n"
    return xp.RawKernel(types + _PART_CODE.replace("NAME", name), name)
