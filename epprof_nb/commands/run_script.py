"""Runs of scripts for ``epprof run``.

The script runs as it would under ``python``: arguments, ``__main__``, output, exit code and
signals are its own. The profile is saved however the script ends.
"""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from epprof_nb import onnxruntime
from epprof_nb.commands.script_errors import explain, keep_as_last, report
from epprof_nb.commands.script_files import save_files
from epprof_nb.commands.script_recording import RunRequest, ScriptRecording
from epprof_nb.core.errors import CaptureError
from epprof_nb.jobs.child_start import follow_in_fork, stop_waiting
from epprof_nb.recording.children.propagation import give_order
from epprof_nb.recording.onnxruntime import sessions
from epprof_nb.recording.out_of_memory.recognize_errors import allocation_error, class_name
from epprof_nb.recording.out_of_memory.torch_failures import Watch
from epprof_nb.recording.process_end.save_at_end import SaveAtEnd
from epprof_nb.util.stderr import say

if TYPE_CHECKING:
    from types import FrameType

    from epprof_nb.commands.main_module import MainModule


def run(main: MainModule, arguments: list[str], request: RunRequest) -> int:
    """Run a script; its profile is saved when the interpreter ends.

    By then the threads that the script left have ended and its ``atexit`` callbacks have run.

    Returns
    -------
    int
        The exit code of the script. If a signal ended it, the same signal ends this process. If
        the script succeeded and a file could not be written, the process ends with `NOT_WRITTEN`.

    Raises
    ------
    SystemExit
        If the script raised it.
    """
    main.prepare(arguments)
    stop_waiting()
    recording, watch = ScriptRecording(request, main), Watch()
    end = SaveAtEnd(stop=recording.end, save=lambda: save_files(recording, request))
    try:
        code = main.compile(lines=request.lines)
        _observe_onnxruntime()
        watch.begin()
        end.install(watch=request.member is not None)
        _begin(recording)
        if request.member is not None and request.children:
            give_order(request.member.order.path, in_fork=follow_in_fork)
        try:
            _raise_recursion_limit()
            main.execute(code)
        finally:
            recording.close_op()
    except SystemExit as raised:
        end.succeeded = raised.code in (None, 0)
        raise
    except BaseException as raised:  # noqa: BLE001 - reported as Python reports it
        # The error itself would keep the frames of the script alive.
        recording.error = class_name(type(raised))
        keep_as_last(raised)
        report(raised)
        if allocation_error(raised) is not None:
            explain(raised, watch.before)
        if isinstance(raised, KeyboardInterrupt):
            end.by = signal.SIGINT
        return 1
    end.succeeded = True
    return 0


def _begin(recording: ScriptRecording) -> None:
    try:
        recording.begin()
    except Exception as error:  # noqa: BLE001 - the script must run in any case
        say(
            f"profiling could not be started ({type(error).__name__}: {error}). The script runs "
            "without it. Run `epprof doctor` to find out what is missing."
        )


def _observe_onnxruntime() -> None:
    try:
        onnxruntime.install()
    except CaptureError as error:
        sessions.disable_with_reason(str(error))  # reported in the profile


def _raise_recursion_limit() -> None:
    """Raise the limit by the frames of the command line, so that the script has all of it."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001
    depth = 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    sys.setrecursionlimit(sys.getrecursionlimit() + depth)
