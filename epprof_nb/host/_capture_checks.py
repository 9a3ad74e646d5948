"""Calls that are not allowed while kernels of this thread are captured into a graph."""

from __future__ import annotations

import sys

from epprof_nb import _native
from epprof_nb.util.code_place import place_of


def refuse_in_capture(what: str, instead: str) -> None:
    """End the capture of this thread, if there is one, and raise RuntimeError.

    Parameters
    ----------
    what
        The call, as in "waits for the device".
    instead
        The remedy.
    """
    if not _native.ep_is_capturing():
        return
    frame = sys._getframe(1)  # noqa: SLF001
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        frame = frame.f_back
    _native.ep_report_violation(f"{what} in {place_of(frame, frame.f_lineno)}. {instead}")
    raise RuntimeError(f"A kernel that is being captured {what}. {instead}")
