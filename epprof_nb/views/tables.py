"""The breakdown's tables as JSON, one at a time, when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from epprof_nb.views.units import shorten

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.views.prepared import Prepared

_ROWS = 400


def _by_op(prepared: Prepared) -> pd.DataFrame:
    return prepared.by_op


def _by_kernel(prepared: Prepared) -> pd.DataFrame:
    return prepared.profile.by_kernel()


def _by_line(prepared: Prepared) -> pd.DataFrame:
    return prepared.profile.by_line()


TABLES: dict[str, Callable[[Prepared], pd.DataFrame]] = {
    "op": _by_op,
    "kernel": _by_kernel,
    "line": _by_line,
}
"""What can be broken down by, and how."""


def table(prepared: Prepared, by: str) -> dict[str, Any]:
    """Return one breakdown as JSON columns, its first rows only; names too long are shortened.

    Raises
    ------
    KeyError
        For a breakdown that there is not.
    """
    frame = TABLES[by](prepared)
    total = len(frame)
    flat = frame.reset_index() if frame.index.name or frame.index.nlevels > 1 else frame
    flat = flat.head(_ROWS)
    columns = []
    for name in flat.columns:
        values: list[Any] = []
        for value in flat[name].tolist():
            if isinstance(value, tuple):
                values.append(" \N{MULTIPLICATION SIGN} ".join(map(str, value)))
            elif pd.isna(value):
                values.append(None)
            elif isinstance(value, int | float):
                values.append(value)
            else:
                values.append(shorten(str(value), 600))
        columns.append({"name": str(name), "values": values})
    return {"columns": columns, "rows": total}
