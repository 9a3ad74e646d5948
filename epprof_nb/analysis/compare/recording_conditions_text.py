"""Sentences on the conditions of recordings: measurements, their effect, and what to do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from epprof_nb.analysis.compare.recording_conditions import NOTABLE
from epprof_nb.analysis.compare.waits_for_core import share_kept_waiting
from epprof_nb.util.format import percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.compare.recording_conditions import Conditions


def why_unclear(under: Conditions, *, is_explained: bool) -> str:
    """Return sentences that say which conditions prevent a verdict.

    Parameters
    ----------
    under
        The conditions.
    is_explained
        Whether there is a difference that the conditions may explain.
    """
    how = "may explain the whole difference" if is_explained else "may hide a difference"
    return f"{on_load(under)} That {how}."


def in_turn(names: tuple[str, str]) -> str:
    """Return a sentence with commands that record both sides under the same conditions."""
    old, new = names
    return (
        f"Run both in turn: `%%gpuprofile {new} --repeat 20 --baseline {old} --interleave`, or "
        '`epprof compare --run "python old.py" "python new.py"` for scripts.'
    )


def on_load(under: Conditions) -> str:
    """Return a sentence on the conditions of both sides, and their possible effect."""
    old, new = under.texts
    if old == new:
        times = [f"While each was recorded, {old}"]
    else:
        both = zip(("old", "new"), under.texts, strict=True)
        times = [f"while the {side} code was recorded, {text}" for side, text in both if text]
        times[0] = f"W{times[0][1:]}"
    shares = [
        f"the {side} one up to {_slower(math.exp(slowdown.total))}"
        for side, slowdown in (("old", under.old), ("new", under.new))
        if slowdown.total >= NOTABLE
    ]
    return f"{'; '.join(times)}. This may have made {' and '.join(shares)}."


def _slower(factor: float) -> str:
    return f"{percent(factor - 1)} slower" if factor < 2 else f"{factor:.1f} times as slow"


def on_waits(indexes: Sequence[ProfileIndex]) -> Iterator[str]:
    """Yield a note if waits for a core are not part of the elapsed times."""
    share = max(map(share_kept_waiting, indexes))
    if share >= NOTABLE:
        yield (
            f"Other processes kept the repeats waiting for a core in up to {percent(share)} of "
            "their time. This wait is part of the times of ops, but not of the elapsed times."
        )
