"""Columns of the ops table for PyTorch's operators: shapes and sequence number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.arrays.ids import unique_inverse
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.data.table import Table


def with_operators(ops: Table, rows: npt.NDArray[Any], sizes: npt.NDArray[np.int64]) -> Table:
    """Fill in the columns of operators and autograd nodes.

    Parameters
    ----------
    ops
        The ops of a recording. The native core keeps the sequence number of an operator in
        ``suspended_ns``.
    rows
        Rows of the operators.
    sizes
        Ids of their shapes; 0 for none.
    """
    used = unique_inverse(sizes)[0].tolist()
    first = next((number for number in used if number), 0)
    texts = _native.operator_sizes(first) if first else []
    known = {number: shapes_text(texts[number - first]) for number in used if number}
    sequence = np.full(len(ops), MISSING, np.int64)
    suspended = ops["suspended_ns"].copy()
    sequence[rows], suspended[rows] = suspended[rows], 0
    return ops.replace(
        source=ops.names("source").replaced(rows, CategoryColumn.constant("torch", len(rows))),
        input_shapes=ops.names("input_shapes").replaced(
            rows, CategoryColumn.from_ids(sizes, known)
        ),
        sequence_number=sequence,
        suspended_ns=suspended,
    )


def shapes_text(sizes: str) -> str:
    """Convert the sizes of PyTorch's NVTX observer to shapes of the column ``input_shapes``.

    Examples
    --------
    >>> shapes_text("[[8, 4], [4], []]")
    '[8,4], [4], []'
    """
    return sizes[1:].removesuffix("]").replace(", ", ",").replace("],[", "], [")
