"""Baseline durations of unprofiled runs, to measure the overhead of ONNX Runtime's profiling.

ONNX Runtime's own profiling, which reveals its nodes, slows a run down. Every observed session
therefore times some of its runs outside of profiles. A profiled run is compared with unprofiled
runs of the same session that had the same input shapes. Overlapping runs slow each other down and
are not compared.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.arrays.thread_ranges import first_in_ranges
from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.arrays.types import IntArray


_MAX_RUNS = 15
"""Number of most recent unprofiled runs per input key that enter the median."""
_MAX_INPUT_KEYS = 64
"""Maximum number of input keys per session."""
_ALWAYS_TIMED, _TIMED_EVERY = 32, 8
"""The first runs are all timed, then one run in every few."""
_MAX_CALLS = 1_000_000

ATTRIBUTE = "_epprof_baseline"
"""Attribute of an observed session that holds its `UnprofiledBaseline`; read at every run."""

now = time.monotonic_ns

_running_timers: set[Timer] = set()
_event_counter = itertools.count()
"""Incremented at each start and stop of a timer."""
_calls: deque[tuple[int, int, int, int, int]] = deque(maxlen=_MAX_CALLS)


class UnprofiledBaseline:
    """Durations of the unprofiled runs of one session."""

    __slots__ = ("_medians", "_numbers", "_timed", "_times", "wait")

    def __init__(self) -> None:
        self.wait = 0
        """Number of runs to skip before the next one is timed."""
        self._timed = 0
        self._times: dict[Any, deque[int]] = {}
        self._medians: dict[Any, int] = {}  # computed at the first recorded run with each key
        self._numbers: dict[Any, int] = {}

    def add(self, key: object, duration_ns: int) -> None:
        """Add an unprofiled run with the input key `key`."""
        self._timed += 1
        self.wait = 0 if self._timed < _ALWAYS_TIMED else _TIMED_EVERY - 1
        times = self._times.get(key)
        if times is not None:
            times.append(duration_ns)
            self._medians.pop(key, None)
            return
        # The first run with new shapes includes the session's setup for them, so it is not counted.
        if len(self._times) >= _MAX_INPUT_KEYS:
            oldest = next(iter(self._times))
            self._times.pop(oldest, None)
            self._medians.pop(oldest, None)
        self._times[key] = deque(maxlen=_MAX_RUNS)

    def median_ns(self, key: object) -> int:
        """Return the median duration for an input key in nanoseconds, or `MISSING`."""
        known = self._medians.get(key)
        if known is None:
            times = self._times.get(key)
            if not times:
                return MISSING
            known = self._medians[key] = int(median(list(times)))
        return known

    def number(self, key: object) -> int:
        """Return the number of an input key, from 1; `MISSING` if there are too many keys."""
        known = self._numbers.get(key)
        if known is None:
            if len(self._numbers) >= _MAX_INPUT_KEYS:
                return MISSING
            known = self._numbers.setdefault(key, len(self._numbers) + 1)
        return known


class Timer:
    """Times an unprofiled run, and detects whether another timed run overlapped it.

    Attributes
    ----------
    ran_alone
        After `stop`, whether no other timed run overlapped.
    """

    __slots__ = ("_begin", "_number", "ran_alone")

    def __init__(self) -> None:
        _running_timers.add(self)
        self._number = next(_event_counter)
        self.ran_alone = len(_running_timers) == 1
        self._begin = now()

    def stop(self) -> int:
        """Stop the timer; return the duration of the run in nanoseconds."""
        duration = now() - self._begin
        self.ran_alone &= next(_event_counter) == self._number + 1
        _running_timers.discard(self)
        return duration


def attach_baseline(session: object) -> None:
    """Start timing unprofiled runs of this session."""
    setattr(session, ATTRIBUTE, UnprofiledBaseline())


def input_key(feed: object, method: str) -> object:
    """Return a key, the input shapes, that is equal for runs with comparable durations.

    Parameters
    ----------
    feed
        The inputs by name: arrays, ``OrtValue`` objects, or other objects with a shape. Runs with
        other inputs all have the same key.
    method
        Name of the session's method.
    """
    return tuple([_shape(value) for value in feed.values()]) if isinstance(feed, dict) else method


def _shape(value: Any) -> object:  # noqa: ANN401
    shape = getattr(value, "shape", None)
    if callable(shape):  # an OrtValue
        return value.data_type(), *(shape() if value.is_tensor() else ())
    return shape, getattr(value, "dtype", None)


def without_sizes(key: object) -> object:
    """Return a key that is equal for runs whose inputs differ only in their sizes.

    Parameters
    ----------
    key
        A result of `input_key`.
    """
    if not isinstance(key, tuple):
        return key
    return tuple([_without_size(of_input) for of_input in key])


def _without_size(of_input: Any) -> object:  # noqa: ANN401
    if isinstance(of_input[0], str):  # an OrtValue: type and sizes
        return of_input[0], len(of_input)
    shape, dtype = of_input
    return None if shape is None else len(shape), dtype


def clear_calls() -> None:
    """Discard the calls of earlier recordings."""
    _calls.clear()


def add_call(begin_ns: int, baseline: UnprofiledBaseline, key: object) -> None:
    """Add a recorded run that has ended on this thread."""
    known = baseline.median_ns(key), baseline.number(key)
    _calls.append((threading.get_native_id(), begin_ns, now(), *known))


def call_durations(thread_ids: IntArray, starts: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the profiled and unprofiled durations of the calls that made some runs.

    Parameters
    ----------
    thread_ids, starts
        Thread and start (CLOCK_MONOTONIC, nanoseconds) of each run's own event.

    Returns
    -------
    call_ns, unprofiled_ns, shapes
        int64 arrays with one value per run, or `MISSING`. If a call made several runs, the first
        has its duration. The unprofiled duration is also missing for overlapping calls. Runs of a
        session with inputs of the same shapes have the same number in ``shapes``.
    """
    call_ns, unprofiled_ns, shapes = (np.full(len(starts), MISSING, np.int64) for _ in range(3))
    calls = np.array(list(_calls), np.int64).reshape(-1, 5)
    calls = calls[np.argsort(calls[:, 1], kind="stable")]
    calls[_overlaps_another(calls[:, 1], calls[:, 2]), 3] = MISSING
    at = first_in_ranges(thread_ids, starts, *calls[:, :3].T)
    rows = np.flatnonzero(at != MISSING)
    call_ns[rows] = calls[at[rows], 2] - calls[at[rows], 1]
    unprofiled_ns[rows] = calls[at[rows], 3]
    shapes[rows] = calls[at[rows], 4]
    return call_ns, unprofiled_ns, shapes


def _overlaps_another(starts: IntArray, ends: IntArray) -> npt.NDArray[np.bool_]:
    """Mask of the intervals, sorted by start, that overlap another one."""
    overlaps = np.zeros(len(starts), np.bool_)
    if len(starts) > 1:
        overlaps[1:] = starts[1:] < np.maximum.accumulate(ends)[:-1]
        overlaps[:-1] |= starts[1:] < ends[:-1]
    return overlaps
