"""Elements read and written by index on CUDA devices, with one launch each.

CuPy has no function that writes at repeated indices for every reduction and dtype. A check of the
indices would wait for the device. Reading outside of an axis gives 0 instead, and writing there
does nothing.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.ep.kernels.cuda.grids import THREADS, grid_of
from epprof_nb.ep.kernels.cuda.index_width import MOST_32_BIT

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, ArrayModule

_TAKE = """
extern "C" __global__ void NAME(const T* x, const I* rows, T* y, N n, long long length, N count,
                                N inner) {
  N step = (N)gridDim.x * blockDim.x;
  for (N i = (N)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    N place = i / inner;
    long long row = rows[place % count];
    if (row < 0) row += length;
    long long at = (place / count * length + row) * inner + i % inner;
    y[i] = 0 <= row && row < length ? x[at] : T(0);
  }
}
"""
_TYPES = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}
_INDICES = {np.dtype(np.int32): "int", np.dtype(np.int64): "long long"}

_PUT = """
long long row = rows[i / inner];
if (row < 0) row += length;
if (0 <= row && row < length) write(&out[row * inner + i % inner], update);
"""

_WRITE = "template <typename T> __device__ void write(T* at, T b) { *at = b; }"

_COMBINE = """
template <int size> struct word {};
template <> struct word<4> { typedef unsigned int type; };
template <> struct word<8> { typedef unsigned long long type; };

template <typename T> __device__ void write(T* at, T b) {
  typedef typename word<sizeof(T)>::type Word;
  Word* bits = reinterpret_cast<Word*>(at);
  Word found = *bits, expected, next;
  do {
    expected = found;
    T a, made;
    memcpy(&a, &expected, sizeof(T));
    made = %s;
    memcpy(&next, &made, sizeof(T));
    found = atomicCAS(bits, expected, next);
  } while (found != expected);
}
"""

# NaN wins, as in NumPy, because comparisons with it are false.
_REDUCTIONS = {
    "none": _WRITE,
    "add": _COMBINE % "a + b",
    "mul": _COMBINE % "a * b",
    "max": _COMBINE % "a != a || a > b ? a : b",
    "min": _COMBINE % "a != a || a < b ? a : b",
}


@cache
def _take_kernel(xp: ArrayModule, itemsize: int, index: np.dtype[Any], few: bool) -> Any:  # noqa: ANN401, FBT001
    name = f"ep_take_{8 * itemsize}_{index.name}_{'few' if few else 'many'}"
    types = f"typedef {_TYPES[itemsize]} T;\ntypedef {_INDICES[index]} I;\n"
    count = f"typedef {'unsigned int' if few else 'long long'} N;\n"
    return xp.RawKernel(types + count + _TAKE.replace("NAME", name), name)


@cache
def _put_kernel(xp: ArrayModule, reduction: str) -> Any:  # noqa: ANN401
    return xp.ElementwiseKernel(
        "raw I rows, T update, int64 length, int64 inner", "raw T out", _PUT,
        f"put_rows_{reduction}", preamble=_REDUCTIONS[reduction],
    )  # fmt: skip


def take_rows(xp: ArrayModule, x: Array, rows: Array, out: Array) -> None:
    """Read rows by index.

    Parameters
    ----------
    xp
        CuPy.
    x
        Array of shape (blocks, rows of a block, size of a row).
    rows
        Integers: the rows to read of each block. Negative ones count from the end.
    out
        Contiguous array. Gets (blocks, number of rows to read, size of a row) elements, in any
        shape; zeros for rows that do not exist.
    """
    n = out.size
    if not n:
        return
    if rows.dtype not in _INDICES:
        rows = rows.astype(np.int64)
    x, rows = (a if a.flags.c_contiguous else xp.ascontiguousarray(a) for a in (x, rows))
    few = n < MOST_32_BIT
    kind = np.uint32 if few else np.int64
    _native.ep_launch(
        _take_kernel(xp, out.dtype.itemsize, rows.dtype, few),
        grid_of(n), (THREADS,),
        (x, rows, out, kind(n), np.int64(x.shape[1]), kind(rows.size), kind(x.shape[2])),
    )  # fmt: skip


def put_rows(xp: ArrayModule, out: Array, rows: Array, updates: Array, reduction: str) -> None:
    """Write rows, or combine them with the existing rows.

    Parameters
    ----------
    xp
        CuPy.
    out
        Array of (number of rows, size of a row).
    rows
        Integers: the row for each update. Negative ones count from the end. Updates for rows that
        do not exist are ignored.
    updates
        Array with the elements of one row for each of `rows`.
    reduction
        ``"none"``, ``"add"``, ``"mul"``, ``"max"`` or ``"min"``. Updates of the same row are
        combined in any order.
    """
    if not (updates.size and out.size):
        return
    target = out
    if reduction != "none" and out.dtype.itemsize < 4:  # too small for atomic operations
        target = out.astype(np.float32 if out.dtype.kind == "f" else np.int32)
        updates = updates.astype(target.dtype)
    _put_kernel(xp, reduction)(rows, updates.reshape(-1), *target.shape, target)
    if target is not out:
        out[...] = target


def flat_places(xp: ArrayModule, indices: Array, shape: tuple[int, ...], axis: int) -> Array:
    """Return the place in a flattened array for each element of an index array.

    Parameters
    ----------
    xp
        CuPy.
    indices
        Indices along `axis`; along the other axes, an element's place is its own.
    shape
        Shape of the array.
    axis
        Axis of the array.

    Returns
    -------
    places
        int64 array; the number of elements of the array where an index is outside of the axis.
    """
    total = xp.zeros((), np.int64)
    step = 1
    inside = True
    for i in reversed(range(len(shape))):
        if i == axis:
            place, inside = _whole(xp, indices, shape[i])
        else:
            place = xp.arange(indices.shape[i]).reshape([-1] + [1] * (len(shape) - 1 - i))
        total = total + place * step
        step *= shape[i]
    return xp.where(inside, total, step)


def flat_rows(xp: ArrayModule, indices: Array, shape: tuple[int, ...]) -> Array:
    """Return the row for each tuple of indices along the last axis.

    Parameters
    ----------
    xp
        CuPy.
    indices
        Tuples of indices of the first axes of an array.
    shape
        Sizes of these axes.

    Returns
    -------
    rows
        int64 array; the number of rows where an index is outside of its axis.
    """
    row = xp.zeros(indices.shape[:-1], np.int64)
    inside = xp.ones(indices.shape[:-1], bool)
    count = 1
    for i, size in enumerate(shape):
        place, valid = _whole(xp, indices[..., i], size)
        row = row * size + place
        inside &= valid
        count *= size
    return xp.where(inside, row, count)


def _whole(xp: ArrayModule, indices: Array, size: int) -> tuple[Array, Array]:
    """Return nonnegative indices, and whether each is inside of the axis."""
    place = xp.where(indices < 0, indices + size, indices).astype(np.int64)
    return place, (place >= 0) & (place < size)
