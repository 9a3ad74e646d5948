"""Runs of a recording that need not be recorded node by node, and the decision for each."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epprof_nb import _native

if TYPE_CHECKING:
    from epprof_nb.recording.onnxruntime.choice_of_runs import RunHistory, SessionRuns

_MAX_RUNS = 1_000_000


@dataclass(slots=True)
class LoggedRun:
    """A run of a recording in a mode other than ``"every"``."""

    op_id: int
    history: RunHistory | None
    """None in the mode ``"off"``."""
    recorded: bool
    failed: bool
    launch_hash: int = 0
    function_hash: int = 0
    """Hashes of its launches; see `epprof_nb.recording.onnxruntime.launch_comparison`."""


_log: deque[LoggedRun] = deque(maxlen=_MAX_RUNS)
_recordings = 0
"""Incremented when a recording begins or ends."""


class RunInProgress:
    """A run in progress on this thread.

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

    __slots__ = ("_first", "_history", "_mismatched", "_recording", "records_nodes")

    def __init__(self, runs: SessionRuns, key: object) -> None:
        self._recording = _recordings
        self._history = None if key is None else runs.history(key)
        self._first = self._history is not None and runs.is_first_of_thread()
        self._mismatched = 0
        self.records_nodes = False
        if (history := self._history) is not None:
            self._mismatched = history.comparison.mismatched
            self.records_nodes = history.must_record(first=self._first, recording=self._recording)
            if self.records_nodes and not self._first:
                history.being_recorded.add(self)
        _native.ort_observe_run(runs.number)

    @property
    def is_current(self) -> bool:
        """Whether the recording in which the run began has not ended."""
        return self._recording == _recordings

    def end(self, duration_ns: int, *, failed: bool) -> None:
        """Add the run to its history and to the log of the recording."""
        try:
            self._add(duration_ns, failed=failed)
        finally:
            if self._history is not None:
                self._history.being_recorded.discard(self)

    def _add(self, duration_ns: int, *, failed: bool) -> None:
        op_id, launches, launch_hash, function_hash, is_recorded, has_subgraphs = (
            _native.ort_take_run()
        )
        if not op_id:
            return  # refused, for example because of the shapes of its inputs
        if not self.is_current:
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
                function_hash=function_hash,
                duration_ns=duration_ns,
                mismatched=self._mismatched,
                recording=self._recording,
            )
        _log.append(LoggedRun(op_id, history, is_recorded, failed, launch_hash, function_hash))


def begin_recording() -> None:
    """Discard the runs of earlier recordings."""
    end_recording()
    _log.clear()


def end_recording() -> None:
    """Ignore the runs in progress, because their last launches are not recorded."""
    global _recordings  # noqa: PLW0603
    _recordings += 1


def logged_runs() -> dict[int, LoggedRun]:
    """Return the runs of the recording in modes other than ``"every"``, by id of their op."""
    return {run.op_id: run for run in list(_log)}
