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
    """Return a sentence on the spread between recordings, and its source."""
    share = percent(found.spread[0])
    if found.is_measured:
        text = f"Recordings of the same code vary by {share}, as each side shows."
        return f"Both were recorded alternately. {text}" if test.is_paired else text
    if test.is_paired:
        what = "runs" if test.is_pooled else "repeats"
        return f"The {what} of both alternated; medians are assumed to vary by {share} anyway."
    known = test.spread
    if _drifts(found, test):
        return (
            "The times drift within the recordings, so other recordings of the same code may vary "
            f"by {share}."
        )
    if known.recordings:
        return (
            f"Recordings of the same code vary by {share} on this machine: `epprof calibrate` "
            f"measured {known.recordings} on {known.date}."
        )
    return (
        f"Recordings of the same code are assumed to vary by {share}; `epprof calibrate` "
        "measures it."
    )
