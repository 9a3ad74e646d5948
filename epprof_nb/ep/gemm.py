"""Products of stacks of matrices in the terms of BLAS: leading dimensions and steps.

BLAS reads a matrix by columns, NumPy writes one by rows. A matrix by rows is its transposed matrix
by columns, so ``C = A @ B`` is computed as ``C.T = B.T @ A.T``.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_SIZE = 2**31 - 1
"""BLAS takes sizes as 32-bit numbers."""


class Operand(NamedTuple):
    """A stack of matrices as BLAS reads it."""

    transposed: bool
    """Whether the elements of a column are neighbours, not those of a row."""
    leading: int
    """Elements from one row to the next; from one column to the next if transposed."""
    step: int
    """Elements from one matrix to the next; 0 if all products have the same matrix."""


class Product(NamedTuple):
    """A batch of products of ``rows x depth`` and ``depth x columns`` matrices."""

    batch: int
    rows: int
    columns: int
    depth: int
    a: Operand
    b: Operand


def operand(
    shape: Sequence[int], strides: Sequence[int], itemsize: int, batch: Sequence[int]
) -> Operand | None:
    """Describe an array as an operand.

    Parameters
    ----------
    shape, strides
        Of the array, which has two dimensions or more; strides in bytes.
    itemsize
        Bytes of an element.
    batch
        Shape of the stack of products, to which the leading dimensions broadcast.

    Returns
    -------
    operand
        None if BLAS cannot read the array in place.
    """
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
    """Return the step of a stack of several dimensions, if it is the same everywhere."""
    axes = [(size, step) for size, step in zip(sizes, steps, strict=True) if size != 1]
    even = all(outer == size * inner for (_, outer), (size, inner) in itertools.pairwise(axes))
    if not even:
        return None
    return axes[-1][1] if axes else 0


def product(  # noqa: PLR0917 - as BLAS names them
    batch: Sequence[int], rows: int, columns: int, depth: int, a: Operand, b: Operand
) -> Product:
    """Return the product of a stack; of a single matrix if all of `a` can be read as one."""
    count = math.prod(batch)
    joined = b.step == 0 and not a.transposed and a.step == rows * a.leading
    if joined and rows * count <= MAX_SIZE:
        return Product(1, rows * count, columns, depth, a._replace(step=0), b)
    return Product(count, rows, columns, depth, a, b)
