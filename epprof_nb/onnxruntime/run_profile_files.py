"""ONNX Runtime's JSON profile of a single run, with the device work added to it.

ONNX Runtime names such a file by the millisecond, so two runs can write to the same file. Here
each run gets a unique name: it is set in the user's run options before the run, and other runs
wait to set theirs until ONNX Runtime has opened the file. At the end of the run its device work is
added, as `epprof_nb.onnxruntime.json_profile` does for a whole session.
"""

from __future__ import annotations

import itertools
import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from epprof_nb import _native
from epprof_nb.onnxruntime import json_profile
from epprof_nb.onnxruntime.run_file_writer import written_run
from epprof_nb.recording.onnxruntime import run_file_notes, sessions
from epprof_nb.recording.session.service import service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.recording.session.recording import Subscription

_numbers = itertools.count(1)
_naming_lock = threading.Lock()
"""Held from the naming of a file until ONNX Runtime has opened it."""


@dataclass(slots=True)
class _Run:
    """A run in progress that writes a file."""

    subscription: Subscription | None = None
    naming: bool = False  # holds the lock


_active_runs: dict[int, _Run] = {}  # by thread


@contextmanager
def own_profile_file(session: object, run_options: object) -> Iterator[None]:
    """Have the run made on this thread write its own complete profile file.

    Parameters
    ----------
    session
        The ``InferenceSession`` that is run.
    run_options
        Its run options. Nothing is done if they write no file, or if the session is not observed.
    """
    prefix = sessions.file_prefix(run_options)
    observed_session = sessions.observed(session)
    number = None if observed_session is None else observed_session.number
    thread = threading.get_ident()
    if prefix is None or observed_session is None or number is None or thread in _active_runs:
        yield
        return
    if observed_session.session_profile:
        if observed_session.captures_graphs:
            yield  # the session's profile is ours, and ends with the first recording
            return
        with written_run(number, prefix):
            yield
        return
    if not _is_writable(prefix):
        run_file_notes.count(prefix, written=False)
    _native.ort_on_run_file(_on_opened, _on_ending)
    run = _Run()
    try:
        _active_runs[thread] = run
        _native.uninterrupted(_begin, run)
        sessions.set_file_prefix(run_options, f"{prefix}_{os.getpid()}_{next(_numbers)}")
        _native.ort_expect_run_file(True)  # noqa: FBT003
        yield
    finally:
        end = partial(_end, run)
        _native.call_then(end, _native.ort_expect_run_file, False)  # noqa: FBT003


def _begin(run: _Run) -> None:
    run.subscription = json_profile.subscribe()
    _naming_lock.acquire()
    run.naming = True


def _end(run: _Run) -> None:
    _on_opened()  # a run that failed before opening its file still holds the lock
    _active_runs.pop(threading.get_ident(), None)
    if run.subscription is not None:
        service.abort(run.subscription)


def _is_writable(prefix: str) -> bool:
    folder = Path(prefix).parent
    return prefix == sessions.NO_FILE or (folder.is_dir() and os.access(folder, os.W_OK))


def _on_opened(*_: int) -> None:
    """Let the next run name its file: the file of this thread's run is open."""
    run = _active_runs.get(threading.get_ident())
    if run is not None and run.naming:
        run.naming = False
        _naming_lock.release()


def _on_ending(session: int, run_op: int) -> None:
    """Add the device work of this thread's run to its profile just before it is written."""
    run = _active_runs.get(threading.get_ident())
    if run is None or run.subscription is None:
        return
    subscription, run.subscription = run.subscription, None
    json_profile.add_device_events(subscription, session, run_op)


def _after_fork_in_child() -> None:
    # The thread that held the lock does not exist in the child.
    global _naming_lock  # noqa: PLW0603
    _naming_lock = threading.Lock()
    _active_runs.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
