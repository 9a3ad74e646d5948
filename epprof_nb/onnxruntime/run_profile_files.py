"""ONNX Runtime's JSON profile of a single run: a file of its own, with the device work in it.

ONNX Runtime names such a file by the millisecond, so that two runs can write into one. Here each
run gets a name of its own: it is put into the user's run options before the run, and other runs
wait to do so until ONNX Runtime has opened the file. When the run is over its device work is
added, as `epprof_nb.onnxruntime.json_profile` does for a whole session.
"""

from __future__ import annotations

import itertools
import os
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epprof_nb import _native
from epprof_nb.capture.service import service
from epprof_nb.onnxruntime import json_profile as ort_device_events
from epprof_nb.recorders.onnxruntime import sessions as ort_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.capture.service import Subscription

_numbers = itertools.count(1)
_turn = threading.Lock()
"""Held from the naming of a file until ONNX Runtime has opened it."""


@dataclass(slots=True)
class _Run:
    """A run that is going on."""

    subscription: Subscription | None
    opened: bool = False


_going: dict[int, _Run] = {}  # by thread


@contextmanager
def of(session: object, run_options: object) -> Iterator[None]:
    """Have the run made meanwhile on this thread write a complete file of its own.

    Parameters
    ----------
    session
        The ``InferenceSession`` that is run.
    run_options
        Its run options. Where they write no file, or ONNX Runtime would not tell of it, nothing
        is done.
    """
    prefix = ort_runs.file_prefix(run_options)
    sight = ort_runs.sight_of(session)
    told = sight is not None and sight.number is not None and not sight.session_profile
    thread = threading.get_ident()
    if prefix is None or not told or thread in _going:
        yield
        return
    _native.ort_on_run_file(_opened, _ending)
    run = _Run(ort_device_events.record())
    _going[thread] = run
    _turn.acquire()
    try:
        ort_runs.rename(run_options, f"{prefix}_{os.getpid()}_{next(_numbers)}")
        _native.ort_expect_run_file(True)  # noqa: FBT003
        yield
    finally:
        _native.ort_expect_run_file(False)  # noqa: FBT003
        _opened()  # a run that failed before its file was open still has its turn
        del _going[thread]
        if run.subscription is not None:
            service.abort(run.subscription)


def _opened(*_: int) -> None:
    """Let the next run have its file named: this thread's has one."""
    run = _going.get(threading.get_ident())
    if run is not None and not run.opened:
        run.opened = True
        _turn.release()


def _ending(session: int, run_op: int) -> None:
    """Put the device work of this thread's run into its profile, which is written next."""
    run = _going.get(threading.get_ident())
    if run is None or run.subscription is None:
        return
    subscription, run.subscription = run.subscription, None
    ort_device_events.keep(subscription, session, run_op)


def _after_fork_in_child() -> None:
    # A run of another thread that had its turn is not in the child.
    global _turn  # noqa: PLW0603
    _turn = threading.Lock()
    _going.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
