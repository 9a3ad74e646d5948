"""Products of stacks of matrices in the terms of BLAS: leading dimensions and steps.

BLAS stores a matrix by columns, NumPy by rows. A matrix by rows equals its transpose by columns, so
``C = A @ B`` is computed as ``C.T = B.T @ A.T``.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

from epprof_nb.ep.kernels.shared.broadcasting import broadcast_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_SIZE = 2**31 - 1
"""BLAS takes sizes as 32-bit numbers."""


class Operand(NamedTuple):
    """A stack of matrices as BLAS reads it."""

    transposed: bool
    """Whether the elements of a column are contiguous, instead of a row."""
    leading: int
    """Elements from one row to the next; from one column to the next if transposed."""
    step: int
    """Elements from one matrix to the next; 0 if all products have the same matrix."""


class Product(NamedTuple):
    """A batch of products of ``rows x depth`` and ``depth x columns`` matrices."""

    shape: tuple[int, ...]
    """Shape of the result."""
    stack: tuple[int, ...]
    """Shape of the batch."""
    batch: int
    rows: int
    columns: int
    depth: int
    a: Operand
    b: Operand
    copies: tuple[bool, bool]
    """Whether `a` and `b` describe contiguous copies, broadcast to the batch."""


class Layout(NamedTuple):
    """Shape and strides of an array; strides in bytes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


@functools.lru_cache(maxsize=4096)
def plan(a: Layout, b: Layout, itemsize: int) -> Product:
    """Plan the product of two arrays, whose shapes fit.

    Parameters
    ----------
    a, b
        The arrays, of one dimension or more.
    itemsize
        Bytes of an element.
    """
    shape = result_shape(a.shape, b.shape)
    left = a if len(a.shape) > 1 else Layout((1, *a.shape), (0, *a.strides))
    right = b if len(b.shape) > 1 else Layout((*b.shape, 1), (*b.strides, 0))
    batch = broadcast_shape(left.shape[:-2], right.shape[:-2])
    rows, depth = left.shape[-2:]
    columns = right.shape[-1]
    x, copies_a = _readable(left, itemsize, batch)
    y, copies_b = _readable(right, itemsize, batch)
    count = math.prod(batch)
    joined = y.step == 0 and not x.transposed and x.step == rows * x.leading
    if joined and rows * count <= MAX_SIZE:  # all of `a` is one matrix
        count, rows, x = 1, rows * count, x._replace(step=0)
    return Product(shape, batch, count, rows, columns, depth, x, y, (copies_a, copies_b))


@functools.lru_cache(maxsize=4096)
def result_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a product of matrices, or of stacks of them, of these shapes."""
    lead = broadcast_shape(a[:-2], b[:-2])
    rows = a[-2:-1] if len(a) > 1 else ()
    columns = b[-1:] if len(b) > 1 else ()
    return (*lead, *rows, *columns)


def _readable(x: Layout, itemsize: int, batch: tuple[int, ...]) -> tuple[Operand, bool]:
    """Return an operand, and whether it must be copied."""
    found = _operand(x.shape, x.strides, itemsize, batch)
    if found is not None:
        return found, False
    rows, columns = x.shape[-2:]
    return Operand(transposed=False, leading=columns, step=rows * columns), True


def _operand(
    shape: Sequence[int], strides: Sequence[int], itemsize: int, batch: Sequence[int]
) -> Operand | None:
    """Describe an array of two dimensions or more; None if BLAS cannot read it in place."""
    if any(stride % itemsize or stride < 0 for stride in strides):
        return None
    *steps, row, column = (stride // itemsize for stride in strides)
    matrix = _matrix(shape[-2], shape[-1], row, column)
    own = [0 if size == 1 else step for size, step in zip(shape[:-2], steps, strict=True)]
    step = _step(batch, [0] * (len(batch) - len(own)) + own)
    return None if matrix is None or step is None else Operand(*matrix, step)


def _matrix(rows: int, columns: int, row: int, column: int) -> tuple[bool, int] | None:
    """Return whether a matrix is transposed, and its leading dimension."""
    row = columns if rows == 1 else row
    column = rows if columns == 1 else column
    if (column == 1 or columns == 1) and columns <= row <= MAX_SIZE:
        return False, row
    if (row == 1 or rows == 1) and rows <= column <= MAX_SIZE:
        return True, column
    return None


def _step(sizes: Sequence[int], steps: Sequence[int]) -> int | None:
    """Return the step of a stack of several dimensions if it is constant, else None."""
    axes = [(size, step) for size, step in zip(sizes, steps, strict=True) if size != 1]
    even = all(outer == size * inner for (_, outer), (size, inner) in itertools.pairwise(axes))
    if not even:
        return None
    return axes[-1][1] if axes else 0
