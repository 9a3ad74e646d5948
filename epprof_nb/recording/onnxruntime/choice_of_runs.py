"""Choice of the runs that are recorded node by node, from the earlier runs of their session.

ONNX Runtime's own recording of nodes slows a run down. In the mode ``"auto"`` only some runs are
recorded. If they launched work on a device, `epprof_nb.recording.onnxruntime.learned_nodes`
identifies the nodes of the others by their launch sequence. Otherwise the recorded runs are a
sample, with at least one run of each recording.
"""

from __future__ import annotations

import itertools
import math
import threading
import weakref
from typing import TYPE_CHECKING, Any

from epprof_nb.recording.onnxruntime.launch_comparison import (
    MAX_FUNCTION_HASHES,
    MAX_HASHES,
    LaunchComparison,
)
from epprof_nb.recording.onnxruntime.operator_launches import (
    OperatorLaunches,
    has_idle_empty_nodes,
)
from epprof_nb.recording.onnxruntime.unprofiled_runs import without_sizes
from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from epprof_nb.recording.onnxruntime.launch_sequences import LaunchSequence
    from epprof_nb.recording.onnxruntime.run_log import LoggedRun, RunInProgress

MAX_SEQUENCES = MAX_HASHES
"""Launch sequences kept per session and input shapes."""
MAX_SEQUENCES_OF_ANY_SIZE = MAX_FUNCTION_HASHES
MAX_SIZES = 4
"""Number of input shapes with their own history; all further shapes share one."""
MAX_INPUTS = 64
"""Number of inputs remembered per session, by types and numbers of dimensions."""
MAX_BYTES = 32 << 20
"""Maximum memory of all launch sequences, in bytes."""
SAMPLED_SHARE = 0.03
"""Maximum share of time for recording nodes of a session without device work."""
FIRST_RUNS = 2
"""Runs recorded in any case: the first one sets up the session for its input shapes."""
MAX_FIRST_RUNS = 32
"""Number of threads whose first runs are recorded. These may launch work that later runs do not,
such as memsets of a library's memory, and it may differ from thread to thread."""
_FIRST_CHECK = 16
"""Number of learned runs of any size after which one is recorded as a check; doubles each time."""
_MAX_DISTRUST = 3
"""Number of recordings with wrongly identified runs after which all runs are recorded."""
_PLAIN_RUNS = 3
"""Runs without nodes whose times must be known before another one is recorded."""

ATTRIBUTE = "_epprof_runs"
"""Attribute of an observed session that holds its `SessionRuns`; read at every recorded run."""

_clock = itertools.count()
_histories: weakref.WeakSet[RunHistory] = weakref.WeakSet()
_lock = fork_safe_lock()
"""Guards `_histories`."""


class RunHistory:
    """Earlier runs of one session with inputs of the same shapes, or of any sizes.

    Attributes
    ----------
    any_size
        Whether the inputs have the same types and numbers of dimensions, but any sizes.
    comparison
        The launches of the runs as hashes.
    sequences
        The launches of recorded runs as bytes, with their nodes; None if runs with these launches
        had different nodes.
    may_learn
        Whether equal launches mean equal nodes.
    being_recorded
        Runs that are being recorded, without the first ones of threads.
    """

    __slots__ = (
        "__weakref__", "_distrust", "_first_runs", "_launches", "_learned_runs", "_operators",
        "_plain_ns", "_plain_runs", "_recorded", "_recorded_in", "_recorded_ns",
        "_spent_ns", "_total_ns", "any_size", "being_recorded", "comparison", "may_learn",
        "sequences", "used",
    )  # fmt: skip

    def __init__(self, *, any_size: bool = False) -> None:
        self.any_size = any_size
        self.may_learn = True
        self.being_recorded: set[RunInProgress] = set()
        self.used = 0
        self._launches = False
        self._plain_runs = 0
        self._plain_ns = self._recorded_ns = math.inf
        self._spent_ns = self._total_ns = 0.0
        self._distrust = 0
        self._recorded_in = -1
        self.forget()
        with _lock:
            _histories.add(self)

    def forget(self) -> None:
        """Discard what was learned; the next runs are recorded."""
        self.sequences: dict[bytes, LaunchSequence | None] = {}
        self.comparison = LaunchComparison(any_size=self.any_size)
        self._operators = OperatorLaunches(any_size=self.any_size)
        self._recorded = 0
        self._first_runs = 0
        self._learned_runs = 0

    def must_record(self, *, first: bool, recording: int = 0) -> bool:
        """Whether to record the next run.

        Parameters
        ----------
        first
            Whether it is the first one of its thread.
        recording
            Number of the recording.
        """
        # Threads that begin at once need not all record the same.
        others = sum(run.is_current for run in list(self.being_recorded))
        later = self._recorded - self._first_runs
        known = self._recorded if first else min(self._first_runs, 1) + later + others
        if known < FIRST_RUNS or self.comparison.owed > others:
            return True
        if self._launches or self.sequences:
            return not self.may_learn or (first and self._first_runs < MAX_FIRST_RUNS)
        if self._recorded_in != recording and not others:
            return True  # else a short recording would have no nodes
        if self._plain_runs < _PLAIN_RUNS:
            return False
        cost = max(self._recorded_ns - self._plain_ns, 0.0)
        return self._spent_ns + cost <= SAMPLED_SHARE * (self._total_ns + self._plain_ns)

    def add(
        self,
        *,
        recorded: bool,
        first: bool,
        launches: int,
        launch_hash: int,
        function_hash: int,
        duration_ns: int,
        mismatched: int,
        recording: int = 0,
    ) -> None:
        """Add a run that has ended, with the value of ``comparison.mismatched`` when it began."""
        self._launches |= launches > 0
        if recorded:
            self._recorded_in = recording
            self._recorded += 1
            self._first_runs += first
            self.comparison.add_recorded(launches, launch_hash, function_hash)
        elif self._launches:
            is_known = self.comparison.compare(launch_hash, function_hash, mismatched)
            if is_known and self.any_size:
                self._add_learned()
        if self._recorded > 1:  # the first run is not representative
            self._add_time(duration_ns, recorded=recorded)

    def _add_learned(self) -> None:
        self._learned_runs += 1
        count = self._learned_runs
        if count >= _FIRST_CHECK and not count & (count - 1):
            self.comparison.owed = max(self.comparison.owed, 1)

    def _add_time(self, duration_ns: int, *, recorded: bool) -> None:
        # Use the shortest times, because other processes can only lengthen a run. The mean of a few
        # runs would hide the cost of recording if one was interrupted.
        self._total_ns += duration_ns
        if recorded:
            self._recorded_ns = min(self._recorded_ns, duration_ns)
            if self._recorded > FIRST_RUNS:
                self._spent_ns += max(duration_ns - self._plain_ns, 0.0)
        else:
            self._plain_ns = min(self._plain_ns, duration_ns)
            self._plain_runs += 1

    def check_nodes(self, launches: bytes, sequence: LaunchSequence) -> None:
        """Stop learning if other nodes could cause the launches of a recorded run."""
        known = [(key, each) for key, each in self.sequences.items() if each is not None]
        is_certain = self._operators.tell_apart(launches, sequence, known)
        if not is_certain or has_idle_empty_nodes(sequence):
            self.may_learn = False

    def learn(self, launches: bytes, sequence: LaunchSequence) -> None:
        """Keep the sequence of a recorded run in place of the oldest one."""
        known = self.sequences.pop(launches, sequence)
        known = known and known.common_with(sequence)
        if known is None:
            self.sequences[launches] = None
            self.may_learn = False
            return
        most = MAX_SEQUENCES_OF_ANY_SIZE if self.any_size else MAX_SEQUENCES
        if len(self.sequences) >= most:
            del self.sequences[next(iter(self.sequences))]
        known = known.also_of(sequence.size)
        self.sequences[launches] = known.sharing_ops(self.sequences.values())
        _limit_memory(self)

    def add_mismatched(self, runs: Iterable[LoggedRun]) -> None:
        """Record the next run, because runs of a recording were not identified.

        Launches that were wrongly considered known are forgotten. A session in which this happens
        repeatedly is recorded run by run.
        """
        hashes = {run.function_hash if self.any_size else run.launch_hash for run in runs}
        self._distrust += self.comparison.distrust(hashes)
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
    """Discard the least recently used sequences until the rest is small enough."""
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


class _InputHistories:
    """Histories of runs with inputs of the same types and numbers of dimensions."""

    __slots__ = ("any_size", "by_size")

    def __init__(self) -> None:
        self.any_size = RunHistory(any_size=True)
        self.by_size: dict[Any, RunHistory] = {}

    @property
    def used(self) -> int:
        return max(each.used for each in [self.any_size, *list(self.by_size.values())])


class SessionRuns:
    """Runs of one session, by the shapes of their inputs. Threads may share it without a lock."""

    __slots__ = ("_by_key", "_inputs", "_thread", "must_record_all", "number")

    def __init__(self, number: int, *, must_record_all: bool) -> None:
        self.number = number
        self.must_record_all = must_record_all
        """Whether nodes cannot be identified later, because they run on pool threads."""
        self._by_key: dict[Any, RunHistory] = {}
        self._inputs: dict[Any, _InputHistories] = {}
        self._thread = threading.local()

    def history(self, key: object) -> RunHistory:
        """Return the history of the runs with an input key."""
        history = self._by_key.get(key)
        if history is None or history.comparison.has_given_up:
            history = self._history_of_inputs(key)
        history.used = next(_clock)
        return history

    def histories(self) -> list[RunHistory]:
        """Return all histories of one size, and the histories of any size that are in use."""
        shared = [inputs.any_size for inputs in list(self._inputs.values())]
        return [*list(self._by_key.values()), *(each for each in shared if each.used)]

    def _history_of_inputs(self, key: object) -> RunHistory:
        kind = without_sizes(key)
        inputs = self._inputs.get(kind)
        if inputs is None:
            inputs = self._inputs.setdefault(kind, _InputHistories())
        if key in inputs.by_size or len(inputs.by_size) >= MAX_SIZES:
            return inputs.any_size
        history = inputs.by_size[key] = self._by_key[key] = RunHistory()
        if len(self._inputs) > MAX_INPUTS:
            others = [item for item in list(self._inputs.items()) if item[0] != kind]
            oldest, its = min(others, key=lambda item: item[1].used)
            self._inputs.pop(oldest, None)
            for size in list(its.by_size):
                self._by_key.pop(size, None)
        return history

    def is_first_of_thread(self) -> bool:
        """Whether this is the first recorded run of the session on the calling thread."""
        if hasattr(self._thread, "ran"):
            return False
        self._thread.ran = True
        return True
