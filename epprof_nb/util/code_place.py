"""Places in source code, for messages."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType


def place_of(frame: FrameType, line: int) -> str:
    """Return file, line and text; omit the file name of a cell, which means nothing to users."""
    file = frame.f_code.co_filename
    text = linecache.getline(file, line, frame.f_globals).strip()
    where = f"{file}:{line}" if Path(file).is_file() else f"line {line}"
    return f"{where} (`{text}`)" if text else where
