"""Choice of the runs that are recorded node by node, from the earlier runs of their session.

ONNX Runtime's own recording of nodes slows a run down. In the mode ``"auto"`` only some runs are
recorded. If they launched work on a device, the nodes of the others are identified by their launch
sequence (`epprof_nb.recorders.onnxruntime.learned_runs`). Otherwise the recorded runs are a sample.
"""

from __future__ import annotations

import itertools
import math
import threading
import weakref
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from epprof_nb.recorders.onnxruntime.launch_sequences import LaunchSequence

MAX_SEQUENCES = 8
"""Launch sequences kept per session and input shapes."""
MAX_HISTORIES = 64
"""Input shapes remembered per session."""
MAX_BYTES = 32 << 20
"""Memory of all launch sequences."""
SAMPLED_SHARE = 0.05
"""Largest share of the time of a session without device work that goes into recording its nodes."""
FIRST_RUNS = 2
"""Runs recorded in any case: the first one sets up the session for its input shapes."""
_MAX_OWED = 64
_MAX_DISTRUST = 3
"""Recordings with runs that seemed to be known and were not, after which all runs are recorded."""
_HITS_TO_FORGIVE = 16
_PLAIN_RUNS = 3
"""Runs without nodes whose times must be known before another one is recorded."""
_MAX_RUNS = 1_000_000

ATTRIBUTE = "_epprof_runs"
"""Attribute of an observed session that holds its `SessionRuns`; read at every recorded run."""

_clock = itertools.count()
_histories: weakref.WeakSet[RunHistory] = weakref.WeakSet()
_lock = fork_safe_lock()
"""Guards `_histories`."""


@dataclass(slots=True)
class LoggedRun:
    """A run of a recording in another mode than ``"every"``."""

    op_id: int
    history: RunHistory | None
    """None in the mode ``"off"``."""
    recorded: bool
    failed: bool
    launch_hash: int = 0
    """Hash of its launches, as the launch callbacks saw them."""


_log: deque[LoggedRun] = deque(maxlen=_MAX_RUNS)
_recordings = 0
"""Incremented when a recording begins or ends."""


class RunHistory:
    """Earlier runs of one session with inputs of the same shapes.

    Attributes
    ----------
    sequences
        The launches of recorded runs as bytes, with their nodes; None if runs with these launches
        had different nodes.
    may_learn
        Whether equal launches mean equal nodes.
    """

    __slots__ = (
        "__weakref__", "_distrust", "_first_recorded", "_hashes", "_hits", "_launches", "_misses",
        "_owed", "_plain_ns", "_plain_runs", "_recorded", "_recorded_ns", "_spent_ns", "_total_ns",
        "may_learn", "sequences", "used",
    )  # fmt: skip

    def __init__(self) -> None:
        self.sequences: dict[bytes, LaunchSequence | None] = {}
        self.may_learn = True
        self.used = 0
        self._launches = False
        self._plain_runs = 0
        self._plain_ns = self._recorded_ns = math.inf
        self._spent_ns = self._total_ns = 0.0
        self._distrust = 0
        self.forget()
        with _lock:
            _histories.add(self)

    def forget(self) -> None:
        """Discard what was learned; the next runs are recorded."""
        self.sequences = {}
        self._hashes: tuple[int, ...] = ()
        self._recorded = self._owed = self._hits = self._misses = 0
        self._first_recorded = False

    def must_record(self, *, first: bool) -> bool:
        """Whether to record the next run; `first`: it is the first one of its thread."""
        if self._recorded < FIRST_RUNS or self._owed > 0:
            return True
        if self._launches or self.sequences:
            return not self.may_learn or (first and not self._first_recorded)
        if self._plain_runs < _PLAIN_RUNS:
            return False
        cost = max(self._recorded_ns - self._plain_ns, 0.0)
        return self._spent_ns + cost <= SAMPLED_SHARE * (self._total_ns + self._plain_ns)

    def add(
        self, *, recorded: bool, first: bool, launches: int, launch_hash: int, duration_ns: int
    ) -> None:
        """Add a run that has ended."""
        self._launches |= launches > 0
        if recorded:
            self._recorded += 1
            self._first_recorded |= first
            self._owed = max(self._owed - 1, 0)
            if launches and launch_hash not in self._hashes:
                # Replaced, not changed: other threads may be reading it.
                self._hashes = (*self._hashes, launch_hash)[-MAX_SEQUENCES:]
        elif self._launches:
            self._compare(launch_hash)
        if self._recorded > 1:  # the first run is no measure
            self._add_time(duration_ns, recorded=recorded)

    def _compare(self, launch_hash: int) -> None:
        """Compare the launches of a run, before their records arrive, with those of recorded runs.

        Each mismatch in a row doubles the number of runs that are recorded next, so that a session
        whose launches always differ is soon recorded run by run.
        """
        if launch_hash in self._hashes:
            self._hits += 1
            if self._hits >= _HITS_TO_FORGIVE:
                self._misses = 0
            return
        self._hits = 0
        self._owed = min(1 << self._misses, _MAX_OWED)
        self._misses = min(self._misses + 1, 16)

    def _add_time(self, duration_ns: int, *, recorded: bool) -> None:
        # The shortest times: other processes can only lengthen a run. A mean of few runs, one of
        # which was interrupted, would make recording look free.
        self._total_ns += duration_ns
        if recorded:
            self._recorded_ns = min(self._recorded_ns, duration_ns)
            if self._recorded > FIRST_RUNS:
                self._spent_ns += max(duration_ns - self._plain_ns, 0.0)
        else:
            self._plain_ns = min(self._plain_ns, duration_ns)
            self._plain_runs += 1

    def learn(self, launches: bytes, sequence: LaunchSequence) -> None:
        """Keep the sequence of a recorded run in place of the one that was recorded first."""
        known = self.sequences.pop(launches, sequence)
        if known is None or not known.same_nodes(sequence):
            self.sequences[launches] = None
            self.may_learn = False
            return
        if len(self.sequences) >= MAX_SEQUENCES:
            del self.sequences[next(iter(self.sequences))]
        self.sequences[launches] = known.sharing_ops(self.sequences.values())
        _limit_memory(self)

    def add_mismatched(self, launch_hashes: set[int]) -> None:
        """Have the next run recorded, because runs of a recording were not identified.

        Hashes that seemed to be known are forgotten: the recorded run with these launches did not
        teach its nodes. A session in which this happens again and again is recorded run by run.
        """
        self._owed = max(self._owed, 1)
        if launch_hashes.isdisjoint(self._hashes):
            return
        self._hashes = tuple(known for known in self._hashes if known not in launch_hashes)
        self._distrust += 1
        if self._distrust >= _MAX_DISTRUST:
            self.may_learn = False

    @property
    def nbytes(self) -> int:
        """Memory of the kept sequences, in bytes."""
        return _nbytes([self])


def _nbytes(histories: Iterable[RunHistory]) -> int:
    total = 0
    for history in histories:
        known = [(key, each) for key, each in list(history.sequences.items()) if each is not None]
        total += sum(len(key) + each.op.nbytes for key, each in known)
        total += sum({id(each.ops): each.ops.nbytes for _, each in known}.values())
    return total


def _limit_memory(newest: RunHistory) -> None:
    """Discard the sequences that were used least recently until the rest is small enough."""
    with _lock:
        others = sorted(
            (h for h in _histories if h is not newest and h.sequences), key=lambda h: h.used
        )
        while _nbytes([newest, *others]) > MAX_BYTES:
            if not others:
                newest.forget()
                newest.may_learn = False
                return
            others.pop(0).forget()


class SessionRuns:
    """Runs of one session, by the shapes of their inputs. Threads may share it without a lock."""

    __slots__ = ("_histories", "_thread", "must_record_all", "number")

    def __init__(self, number: int, *, must_record_all: bool) -> None:
        self.number = number
        self.must_record_all = must_record_all
        """Whether nodes cannot be identified later, because they run on pool threads."""
        self._histories: dict[Any, RunHistory] = {}
        self._thread = threading.local()

    def history(self, key: object) -> RunHistory:
        """Return the history of the runs with an input key."""
        history = self._histories.get(key)
        if history is None:
            history = self._histories.setdefault(key, RunHistory())
            if len(self._histories) > MAX_HISTORIES:
                others = [item for item in list(self._histories.items()) if item[0] != key]
                self._histories.pop(min(others, key=lambda item: item[1].used)[0], None)
        history.used = next(_clock)
        return history

    def is_first_of_thread(self) -> bool:
        """Whether this is the first recorded run of the session on the calling thread."""
        ran = getattr(self._thread, "ran", False)
        self._thread.ran = True
        return not ran


class RunInProgress:
    """A run that is being made on this thread.

    Parameters
    ----------
    runs
        The session's runs.
    key
        The input key; None to record no nodes and to learn nothing (the mode ``"off"``).

    Attributes
    ----------
    records_nodes
        Whether the run is to be recorded node by node.
    """

    __slots__ = ("_first", "_history", "_recording", "records_nodes")

    def __init__(self, runs: SessionRuns, key: object) -> None:
        self._recording = _recordings
        self._history = None if key is None else runs.history(key)
        self._first = self._history is not None and runs.is_first_of_thread()
        self.records_nodes = self._history is not None and self._history.must_record(
            first=self._first
        )
        _native.ort_observe_run(runs.number)

    def end(self, duration_ns: int, *, failed: bool) -> None:
        """Add the run to its history and to the log of the recording."""
        op_id, launches, launch_hash, is_recorded, has_subgraphs = _native.ort_take_run()
        if not op_id:
            return  # refused, for example because of the shapes of its inputs
        if self._recording != _recordings:
            return  # the recording ended, and with it the log of launches
        history = self._history
        if history is not None and has_subgraphs:
            history.may_learn = False
        if history is not None and not failed:
            history.add(
                recorded=is_recorded,
                first=self._first,
                launches=launches,
                launch_hash=launch_hash,
                duration_ns=duration_ns,
            )
        _log.append(LoggedRun(op_id, history, is_recorded, failed, launch_hash))


def begin_recording() -> None:
    """Discard the runs of earlier recordings."""
    end_recording()
    _log.clear()


def end_recording() -> None:
    """Ignore the runs that are in progress: their launches are not seen to the end."""
    global _recordings  # noqa: PLW0603
    _recordings += 1


def logged_runs() -> dict[int, LoggedRun]:
    """Return the runs of the recording in other modes than ``"every"``, by the id of their op."""
    return {run.op_id: run for run in list(_log)}
