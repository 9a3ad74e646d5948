"""Registry of the breakdowns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.analysis.by_kernel import by_kernel
from epprof_nb.analysis.by_node import by_node, by_op_type
from epprof_nb.analysis.by_op import by_line, by_op
from epprof_nb.analysis.by_stream import by_stream

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from epprof_nb.analysis.index import ProfileIndex

BREAKDOWNS: dict[str, Callable[..., pd.DataFrame]] = {
    "op": by_op,
    "op_type": by_op_type,
    "node": by_node,
    "kernel": by_kernel,
    "line": by_line,
    "stream": by_stream,
}
"""Breakdowns that are tables, by the name used in ``prof.breakdown(by=...)``, in display order."""


def breakdown(index: ProfileIndex, by: str) -> pd.DataFrame:
    """Return one of `BREAKDOWNS`, for `ProfileIndex.cached`."""
    return BREAKDOWNS[by](index.profile, index=index)
