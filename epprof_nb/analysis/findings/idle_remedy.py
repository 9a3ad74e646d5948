"""Remedies of idle time in which the host worked, and what each saves."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.critical_path.chain import CriticalPath
from epprof_nb.analysis.critical_path.changed_durations import Removed
from epprof_nb.analysis.findings.finding import LATER_STEPS, is_cell
from epprof_nb.analysis.utilisation.idle_intervals import AFTER, BEFORE
from epprof_nb.analysis.utilisation.late_launches import LAUNCH_HOST_NS
from epprof_nb.arrays.intervals import length
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Generator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.utilisation.host_idle import HostIdle
    from epprof_nb.arrays.types import BoolArray

_OVERLAP = (
    "Do this work while the {word} is busy: launch first, or prepare the next input ahead on "
    "another thread."
)
_OVERLAP_ON_SEVERAL = (
    "Do this work while the {word} is busy: prepare the next inputs ahead on several other threads "
    "or processes; one more thread would still be late."
)
_OVERLAP_AFTER = "Do this work while the {word} is busy, if it does not need all results."
_OVERLAPPED = 0.5
"""Minimum part of the idle time that overlap must save to be the remedy."""
_LEAST_OVERLAP, _SPREAD = 0.5, 1.25
"""Bounds of what an overlap saves, relative to its gain: times vary from run to run."""
_LONGEST_PREPARATION_NS = 5 * LAUNCH_HOST_NS
"""Maximum time, ns, for which a thread other than the cell's prepares its next launch."""
_AWAIT_EARLIER = (
    "Begin to wait for several of these at once, before they are needed (`asyncio.gather`, "
    "`asyncio.create_task`)."
)


class IdleRemedy(NamedTuple):
    """A sentence, and what following it saves, ns: at least, probably and at most."""

    text: str
    low: int
    gain: int
    high: int


def idle_remedy(
    index: ProfileIndex, found: HostIdle, total: int, slowdown: float, *, awaited: bool
) -> Generator[list[Removed], list[int], IdleRemedy]:
    """Ask for a saving; return the remedy for host work in idle time, and its saving with bounds.

    Host work can overlap only with device work; the rest must become shorter. What a coroutine
    awaits can overlap with itself, too: all of it then takes about as long as one turn's.

    Parameters
    ----------
    index
        Index of the profile.
    found
        The intervals of one place.
    total
        Their time, in which several devices may idle together, ns.
    slowdown
        By which factor profiling slowed the host there.
    awaited
        Whether the host did not work, but a coroutine was suspended there.
    """
    word, position = device_word(index.profile.info), found.idle.position
    own = found.take(np.flatnonzero(~_prepares_launch(index, found)))
    (saved,) = yield [Removed(thread=own.thread, start=own.start, end=own.end)]
    saved = int(min(saved, total) / slowdown)
    if (position == BEFORE).all():
        done_before = "Do this work before the cell, or make it faster."
        later = f"Make this work faster, keep its result, or {LATER_STEPS}."
        text = done_before if is_cell(index.profile.info) else later
        return IdleRemedy(text, 0, saved, saved)
    overlap = min(
        length(*index.busy()), int(found.time[position != BEFORE].sum() / slowdown), saved
    )
    if awaited and len(found.time) > 1:
        gain = saved - saved // len(found.time)
        return IdleRemedy(_AWAIT_EARLIER, int(_LEAST_OVERLAP * gain), gain, saved)
    if overlap >= _OVERLAPPED * saved:
        if (position == AFTER).all():
            return IdleRemedy(_OVERLAP_AFTER.format(word=word), 0, overlap, overlap)
        # One thread takes as long for this work as the host did, also while the device was busy.
        work = int((found.end - found.begun).sum() / slowdown)
        left = wall_of(index.profile) - work
        remedy = _OVERLAP if left >= _OVERLAPPED * overlap else _OVERLAP_ON_SEVERAL
        high = min(int(_SPREAD * overlap), saved)
        gain = min(overlap, left) if remedy == _OVERLAP else overlap
        return IdleRemedy(remedy.format(word=word), int(_LEAST_OVERLAP * gain), gain, high)
    remedy = (
        f"Make this work faster, or keep its result: the {word} is not busy for long enough to do "
        "much of it meanwhile."
    )
    return IdleRemedy(remedy, 0, saved, saved)


def _prepares_launch(index: ProfileIndex, found: HostIdle) -> BoolArray:
    """Return the mask of the gaps in which a library's thread prepared a launch.

    Such a thread, for example of PyTorch's backward pass, works for the cell's thread, which waits
    for it. The user's code cannot prepare these launches ahead. In longer gaps, it does other work;
    a single longer gap can be a delay by the system.
    """
    home = index.cached(CriticalPath, "launch").input.home_thread
    is_other: BoolArray = (found.thread != home) & (found.thread != MISSING)
    is_long: BoolArray = is_other & (found.end - found.start > _LONGEST_PREPARATION_NS)
    return is_other & ~is_long if is_long.sum() > 1 else is_other
