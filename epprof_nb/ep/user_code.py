"""The line of the user's code that called the package, for warnings and descriptions."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from epprof_nb.util.format import shorten

if TYPE_CHECKING:
    from types import FrameType

_LINE_CHARACTERS = 80


def _user_frame() -> tuple[FrameType, int]:
    """Return the first frame outside of this package and ONNX Runtime, and its ``stacklevel``."""
    level, frame = 0, sys._getframe(1)  # noqa: SLF001
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in (
        "epprof_nb", "onnxruntime", "contextlib",
    ):  # fmt: skip
        frame = frame.f_back
        level += 1
    return frame, level


def user_level() -> int:
    """Return the ``stacklevel`` for warnings about the user's line."""
    return _user_frame()[1]


def user_line() -> str:
    """Return the text of the line that made the run, as statements are named in profiles."""
    frame, _ = _user_frame()
    code = frame.f_code
    text = linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals).strip()
    return shorten(text or f"{Path(code.co_filename).name}:{frame.f_lineno}", _LINE_CHARACTERS)
