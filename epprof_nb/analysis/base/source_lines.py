"""Source text of the profiled cells, by line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.data.profile_data import ProfileData


def split_lines(text: str) -> list[str]:
    """Split a source into lines as Python's grammar does; the line ends are removed."""
    # str.splitlines would also split at form feeds.
    return re.split(r"\r\n|\r|\n", text)


def line_text(lines: Sequence[str], line: int) -> str:
    """Return a line (from 1) without its indentation; empty if there is no such line."""
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def source_line(profile: ProfileData, cell: str | None, line: int) -> str:
    """Return a cell's line without its indentation; empty if it is unknown."""
    return line_text(split_lines(profile.sources.get(cell or "", "")), line)
