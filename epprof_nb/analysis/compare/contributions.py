"""Contributions of the ops to the change of the elapsed time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.compare.elapsed_parts import ElapsedParts
    from epprof_nb.analysis.compare.match_ops import Pair
    from epprof_nb.analysis.compare.recordings import Recordings
    from epprof_nb.arrays.types import IntArray


class Contributions(NamedTuple):
    """Contributions of the pairs of paths, as int64 arrays in ns.

    ``of_device`` is the part of ``total`` due to the device time of the work that a pair launched.
    It is negative if a pair took longer because it waited for the work of another pair.
    """

    total: IntArray
    of_device: IntArray


def contributions(
    pairs: Sequence[Pair], before: Recordings, after: Recordings, *, is_paired: bool = False
) -> Contributions:
    """Return by how much each pair of paths changed the elapsed time.

    A contribution is the change of the time in the ops themselves, without the ops below. If a wait
    takes longer because its device work takes longer, the change belongs to the op that launched
    the work, up to the change of the device time. Contributions add up to the change of the elapsed
    time, except for time outside of all ops and for the difference between a sum of medians and the
    median of sums.

    If `is_paired`, the repeats of both sides alternated, and a change is the median of the changes
    of the pairs of repeats.
    """
    sides = [
        [_OpPathTimes(numbers, parts) for parts in recordings.parts]
        for numbers, recordings in (
            ([pair.old for pair in pairs], before),
            ([pair.new for pair in pairs], after),
        )
    ]
    own, launched = (
        median_change(
            *([getattr(times, name) for times in side] for side in sides), is_paired=is_paired
        )
        for name in ("own", "launched")
    )
    keys = sorted({key for side in sides for times in side for key in times.waits})
    waited = [[times.waits_of(keys) for times in side] for side in sides]
    waits = dict(zip(keys, median_change(*waited, is_paired=is_paired), strict=True))
    of_device, awaited = np.zeros(len(pairs)), np.zeros(len(pairs))
    for (_, launching), change in waits.items():
        awaited[launching] += change
    # The device time explains only a change in its own direction.
    is_due = np.sign(awaited) * np.sign(launched) > 0
    due = np.where(is_due, np.minimum(np.abs(awaited), np.abs(launched)), 0)
    share = np.divide(due, np.abs(awaited), out=np.zeros(len(pairs)), where=awaited != 0)
    for (waiting, launching), change in waits.items():
        moved = share[launching] * change
        of_device[waiting] -= moved
        of_device[launching] += moved
    return Contributions(*(np.rint(ns).astype(np.int64) for ns in (own + of_device, of_device)))


def median_change(
    old: Sequence[np.ndarray], new: Sequence[np.ndarray], *, is_paired: bool
) -> np.ndarray:
    """Return the change of each row from the repeats of the old recordings to the new ones.

    This is the change of the median of the recordings' medians, or the median of the changes of
    pairs.
    """
    if is_paired:
        changes = []
        for before, after in zip(old, new, strict=True):
            repeats = min(before.shape[1], after.shape[1])
            changes.append(after[:, :repeats] - before[:, :repeats])
        return _typical(changes)
    change: np.ndarray = _typical(new) - _typical(old)
    return change


def _typical(recordings: Sequence[np.ndarray]) -> np.ndarray:
    medians: np.ndarray = np.median([np.median(values, axis=1) for values in recordings], axis=0)
    return medians


class _OpPathTimes:
    """Times of a recording, in matrices with a row per pair of paths and a column per repeat.

    ``own`` and ``launched`` are float64 matrices; ``waits`` has the times by waiting and launching
    pair.
    """

    def __init__(self, paths: Sequence[int | None], parts: ElapsedParts) -> None:
        numbers = {path: number for number, path in enumerate(paths) if path is not None}
        has = np.array([path is not None for path in paths], np.bool_)[:, None]
        rows = np.array([path or 0 for path in paths], np.int64)
        self.own, self.launched = (
            np.where(has, values[rows], 0.0) for values in (parts.own_ns, parts.launched_ns)
        )
        self.waits: dict[tuple[int, int], np.ndarray] = {}
        both = zip(parts.waiting.tolist(), parts.awaited.tolist(), strict=True)
        for (waiting, awaited), times in zip(both, parts.waited_ns, strict=True):
            key = numbers[waiting], numbers[awaited]
            self.waits[key] = self.waits.get(key, 0.0) + times.astype(np.float64)

    def waits_of(self, keys: Sequence[tuple[int, int]]) -> np.ndarray:
        """Return the times of some waits; zero if the recording lacks a wait."""
        repeats = self.own.shape[1]
        none = np.zeros(repeats)
        found = [self.waits.get(key, none) for key in keys]
        return np.stack(found) if found else np.zeros((0, repeats))
