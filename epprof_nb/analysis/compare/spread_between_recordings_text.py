"""Sentences on how much recordings of the same code vary, and on intervals that are too wide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.util.format import percent

if TYPE_CHECKING:
    from epprof_nb.analysis.compare.comparison_table import Test
    from epprof_nb.analysis.compare.significance import Ratios

_UNSTEADY = 0.5
"""Maximum spread from drift; beyond it, the drift says nothing about other recordings."""


def on_width(found: Ratios, test: Test) -> str:
    """Return sentences that say why an interval is too wide."""
    differs = bool(found.differs[0])
    if found.spread[0] > _UNSTEADY and _drifts(found, test):
        what = "tell how large the change is" if differs else "compare"
        limit = percent(_UNSTEADY)
        return f"The recordings are too unsteady to {what}: their times drift by more than {limit}."
    what = "how large the change is" if differs else "whether the time changed"
    return f"{on_spread(found, test)} The recordings vary too much to tell {what}."


def _drifts(found: Ratios, test: Test) -> bool:
    """Return whether a drift within the recordings adds to the spread that is known."""
    return not found.is_measured and bool(found.spread[0] > 1.2 * test.spread.total)


def steadier(test: Test) -> str:
    """Return a sentence that says how recordings vary by less."""
    more = "Record more runs" if test.is_pooled else "Record more repeats"
    if not test.is_paired:
        more += ", or both versions alternately,"
    return f"{more} while no other program uses the machine."


def on_spread(found: Ratios, test: Test) -> str:
    """Return a sentence on how much recordings of the same code differ, and its source."""
    alternated, may, known = "", "may ", test.spread
    if test.is_paired:
        what = "runs" if test.is_pooled else "repeats"
        alternated, may = f"The {what} of both alternated. ", "may still "
    if found.is_measured:
        alternated = "Both were recorded alternately. " if test.is_paired else ""
        may, source = "", "as each side shows"
    elif test.is_paired:
        source = "assumed"
    elif _drifts(found, test):
        source = "because their times drift"
    elif known.recordings:
        may, source = "", f"`epprof calibrate` measured {known.recordings} on {known.date}"
    else:
        source = "assumed; `epprof calibrate` measures it"
    share = percent(found.spread[0])
    return f"{alternated}Recordings of the same code {may}differ by {share} ({source})."
