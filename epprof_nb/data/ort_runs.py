"""Runs of ONNX Runtime sessions among the ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import BoolArray
    from epprof_nb.data.table import Table


def is_run(ops: Table) -> BoolArray:
    """Return a mask of the runs of sessions.

    Parameters
    ----------
    ops
        A table of schema `epprof_nb.data.schema.OPS`.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> is_run(synthetic_profile(activities=100).tables["ops"]).any()  # runs no session
    np.False_
    """
    mask: BoolArray = ops.names("category").equals("session") & ops.names("op_type").equals("run")
    return mask
