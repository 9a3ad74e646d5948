"""How long runs take unprofiled, to be held against their length while they are profiled.

ONNX Runtime's own profiling, by which its nodes are seen, stretches a run. Every observed session
therefore times some of its runs outside of profiles. A run in a profile is compared with unprofiled
ones of the same session whose inputs had the same shapes. Runs beside other runs, which slow each
other, are compared with none.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    I64 = npt.NDArray[np.int64]

_KEPT = 15  # newest unprofiled runs whose median counts, for each set of input shapes
_SHAPES = 64  # sets of input shapes remembered of a session
_DENSE, _SPARSE = 32, 8  # so many first runs are timed, then one in so many
_MOST_CALLS = 1_000_000

ATTRIBUTE = "_epprof_pace"
"""Where a session has its `Pace`, if it is observed: looked up at every run."""

now = time.monotonic_ns

_timing: set[Timer] = set()
_moments = itertools.count()  # one at each start and stop of a timer
_calls: deque[tuple[int, int, int, int]] = deque(maxlen=_MOST_CALLS)


class Pace:
    """The unprofiled runs of one session."""

    __slots__ = ("_timed", "_times", "wait")

    def __init__(self) -> None:
        self.wait = 0
        """Runs to let pass untimed before the next one is timed."""
        self._timed = 0
        self._times: dict[Any, deque[int]] = {}

    def add(self, inputs: object, duration_ns: int) -> None:
        """Remember an unprofiled run."""
        self._timed += 1
        self.wait = 0 if self._timed < _DENSE else _SPARSE - 1
        times = self._times.get(inputs)
        if times is not None:
            times.append(duration_ns)
            return
        # The first run with such inputs also sets the session up for them: it is no measure.
        if len(self._times) >= _SHAPES:
            self._times.pop(next(iter(self._times)), None)
        self._times[inputs] = deque(maxlen=_KEPT)

    def typical(self, inputs: object) -> int:
        """Return the median of the unprofiled runs with such inputs, ns; `MISSING` for none."""
        times = self._times.get(inputs)
        return int(median(list(times))) if times else MISSING


class Timer:
    """Times an unprofiled run, and knows whether another one was timed beside it.

    Attributes
    ----------
    alone
        After `stop`: no other run was timed meanwhile.
    """

    __slots__ = ("_begun", "_number", "alone")

    def __init__(self) -> None:
        _timing.add(self)
        self._number = next(_moments)
        self.alone = len(_timing) == 1
        self._begun = now()

    def stop(self) -> int:
        """End it; return how long the run took, nanoseconds."""
        duration = now() - self._begun
        self.alone &= next(_moments) == self._number + 1
        _timing.discard(self)
        return duration


def follow(session: object) -> None:
    """Time runs of this session from now on."""
    setattr(session, ATTRIBUTE, Pace())


def inputs_of(args: tuple[Any, ...], kwargs: dict[str, Any], way: str) -> object:
    """Return what two runs must share for their times to be compared: their inputs' shapes.

    Parameters
    ----------
    args, kwargs
        What the session's method was called with.
    way
        The method's name. Of ``run`` the shapes are known; all runs by another one are alike.
    """
    feed = args[1] if len(args) > 1 else kwargs.get("input_feed")
    if way != "run" or not isinstance(feed, dict):
        return way
    return tuple([getattr(value, "shape", None) for value in feed.values()])


def forget_calls() -> None:
    """Begin a recording: runs of earlier ones are nobody's."""
    _calls.clear()


def add_call(begun_ns: int, pace: Pace, inputs: object) -> None:
    """Remember a recorded run that has ended on this thread."""
    _calls.append((threading.get_native_id(), begun_ns, now(), pace.typical(inputs)))


def lengths_of(thread_ids: I64, starts: I64) -> tuple[I64, I64]:
    """Return how long the calls took that made some runs, and would have taken unprofiled.

    Parameters
    ----------
    thread_ids, starts
        Thread and start (CLOCK_MONOTONIC, nanoseconds) of each run's own event.

    Returns
    -------
    call_ns, unprofiled_ns
        int64 arrays, one value a run; `MISSING` where it is not known. Of several runs inside one
        call the first has its length. The second is missing, too, for calls beside others.
    """
    call_ns, unprofiled_ns = (np.full(len(starts), MISSING, np.int64) for _ in range(2))
    calls = np.array(list(_calls), np.int64).reshape(-1, 4)
    calls = calls[np.argsort(calls[:, 1], kind="stable")]
    calls[_beside_others(calls[:, 1], calls[:, 2]), 3] = MISSING
    for thread in np.unique(thread_ids):
        mine = calls[calls[:, 0] == thread]
        rows = np.flatnonzero(thread_ids == thread)
        rows = rows[np.argsort(starts[rows], kind="stable")]
        at = np.searchsorted(mine[:, 1], starts[rows], side="right") - 1
        rows, at = rows[at >= 0], at[at >= 0]
        inside = (starts[rows] < mine[at, 2]) & (np.diff(at, prepend=-1) != 0)
        rows, at = rows[inside], at[inside]
        call_ns[rows] = mine[at, 2] - mine[at, 1]
        unprofiled_ns[rows] = mine[at, 3]
    return call_ns, unprofiled_ns


def _beside_others(starts: I64, ends: I64) -> npt.NDArray[np.bool_]:
    """Which stretches overlap another one; they are in the order of their starts."""
    beside = np.zeros(len(starts), np.bool_)
    if len(starts) > 1:
        beside[1:] = starts[1:] < np.maximum.accumulate(ends)[:-1]
        beside[:-1] |= starts[1:] < ends[:-1]
    return beside
