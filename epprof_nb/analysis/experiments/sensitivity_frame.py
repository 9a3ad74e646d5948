"""SensitivityFrame: a DataFrame of sensitivities that is displayed in few, short columns.

A separate module, because it imports pandas.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from epprof_nb.analysis.experiments.ops_to_delay import SIDES
from epprof_nb.analysis.experiments.sentences import slope_text
from epprof_nb.analysis.experiments.slopes import Slope
from epprof_nb.data.noted_frame import NotedFrame
from epprof_nb.util.format import duration, percent

_WIDTH = 120
"""Width of its text, in which each row is one line."""


class SensitivityFrame(NotedFrame):
    """DataFrame displayed with each value and its interval in one column.

    Operations on it return a plain DataFrame.
    """

    def __repr__(self) -> str:
        with pd.option_context("display.max_columns", None, "display.width", _WIDTH):
            return super().__repr__()

    def _shown(self) -> pd.DataFrame:
        frame = pd.DataFrame(self)
        try:
            return frame if frame.empty else _short(frame)
        except KeyError:  # columns were removed in place
            return frame

    def _notes(self) -> list[str]:
        columns = [f"Rounded, and not all is shown. Columns: {', '.join(self.columns)}."]
        return [*super()._notes(), *columns[: len(self)]]


def _short(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns to display."""
    shown: dict[str, Any] = {"name": frame["name"]}
    for side in SIDES:
        shown[side] = frame[f"{side}_share"].map(percent)
    for side in SIDES:
        name = f"{side}_sensitivity"
        slopes = zip(*(frame[part] for part in (name, f"{name}_low", f"{name}_high")), strict=True)
        shown[f"{side} sensitivity"] = [slope_text(Slope(*values)) for values in slopes]
    savings = (frame[f"saving_{part}_ns"] for part in ("if_free", "low", "high"))
    shown["saving if free"] = [
        "" if pd.isna(ns) else f"{duration(ns)} ({duration(low)} to {duration(high)})"
        for ns, low, high in zip(*savings, strict=True)
    ]
    shown["limit"] = frame["limit"].astype(object).fillna("")
    if frame["note"].any():
        shown["note"] = frame["note"]
    return pd.DataFrame(shown)
