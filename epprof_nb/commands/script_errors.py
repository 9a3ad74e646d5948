"""Errors of a script, reported as Python reports them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from epprof_nb.util.stderr import say

if TYPE_CHECKING:
    from types import TracebackType


def keep_as_last(error: BaseException) -> None:
    """Keep the error where Python does before it reports one; it clears these when it ends."""
    error = error.with_traceback(_without_own(error.__traceback__))
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error


def report(error: BaseException) -> None:
    """Print an error as Python does, without the frames of this package."""
    shown = _without_own(error.__traceback__)
    error = error.with_traceback(shown)
    try:
        sys.excepthook(type(error), error, shown)
    except SystemExit:
        raise
    except BaseException as failure:  # noqa: BLE001 - a hook of the script failed
        inner = _without_own(failure.__traceback__)
        failure.__context__ = None
        say("Error in sys.excepthook:", prefix="")
        sys.__excepthook__(type(failure), failure.with_traceback(inner), inner)
        say("\nOriginal exception was:", prefix="")
        sys.__excepthook__(type(error), error, shown)


def explain(error: BaseException, failures_before: int) -> None:
    """Print the explanation of an out-of-memory error."""
    from epprof_nb.profiles.out_of_memory_in_scripts import explained

    text = explained(error, failures_before)
    if text is not None:
        say(f"\n{text}", prefix="")


def _without_own(shown: TracebackType | None) -> TracebackType | None:
    folder = os.path.dirname(__file__)  # noqa: PTH120
    while shown is not None and shown.tb_frame.f_code.co_filename.startswith(folder):
        shown = shown.tb_next
    return shown
