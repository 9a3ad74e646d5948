"""Runs of ONNX Runtime sessions among the ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.util.format import plural

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


def reason_without_nodes(runs: int, mode: object) -> str:
    """Return why no run was recorded node by node, and what to do.

    Parameters
    ----------
    runs
        Their number.
    mode
        The mode in which nodes were recorded.

    Examples
    --------
    >>> reason_without_nodes(3, "off")
    "The nodes of 0 of 3 runs were recorded: ort_nodes is 'off'. Use ort_nodes='auto' or 'every'."
    """
    why, use = (
        (": ort_nodes is 'off'", "'auto' or 'every'")
        if mode == "off"
        else (", to keep the profiling overhead low", "'every' to record each run")
    )
    return f"The nodes of 0 of {plural(runs, 'run')} were recorded{why}. Use ort_nodes={use}."
