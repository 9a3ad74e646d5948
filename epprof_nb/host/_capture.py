"""Calls that are not allowed while kernels of this thread are captured into a graph."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from epprof_nb import _native

if TYPE_CHECKING:
    from types import FrameType


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
    _native.ep_report_violation(f"{what} in {_place(frame)}. {instead}")
    raise RuntimeError(f"A kernel that is being captured {what}. {instead}")


def _place(frame: FrameType) -> str:
    """Return file, line and text; the name of a cell's file says nothing and is left out."""
    file, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(file, line, frame.f_globals).strip()
    where = f"{file}:{line}" if Path(file).is_file() else f"line {line}"
    return f"{where} (`{text}`)" if text else where
