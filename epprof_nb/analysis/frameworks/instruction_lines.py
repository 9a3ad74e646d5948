"""Source lines of the instructions that XLA compiled, if the profile has their text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.frameworks.training_phases import is_of_type
from epprof_nb.arrays.groups import group_codes
from epprof_nb.data.op_args import arguments

if TYPE_CHECKING:
    from collections.abc import Container

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


class InstructionLines(NamedTuple):
    """The instructions with a line.

    Attributes
    ----------
    rows
        Rows of the ops.
    codes
        Code of the place of each.
    places
        File, or cell, and line of each code.
    """

    rows: IntArray
    codes: IntArray
    places: list[tuple[str, int]]


def instruction_lines(index: ProfileIndex, files: Container[str]) -> InstructionLines:
    """Return the instructions that come from a line of one of `files`."""
    ops, sources = index.profile.tables["ops"], index.profile.sources
    rows = np.flatnonzero(is_of_type(index, "hlo"))
    file, line = arguments(ops.names("args"), rows, ["file", "line"])
    codes, first = group_codes(file.codes.astype(np.int64), line.codes.astype(np.int64))
    lines_of: dict[str, list[str]] = {}
    places: list[tuple[str, int]] = []
    kept = np.zeros(len(first), np.bool_)
    number = np.zeros(len(first), np.int64)
    for code, row in enumerate(first.tolist()):
        if min(file.codes[row], line.codes[row]) < 0:
            continue
        name, at = file.distinct[file.codes[row]], line.distinct[line.codes[row]]
        if name not in sources or name not in files or not isinstance(at, int):
            continue
        lines = lines_of.setdefault(name, sources[name].splitlines())
        if 0 < at <= len(lines) and lines[at - 1].strip():
            kept[code], number[code] = True, len(places)
            places.append((name, at))
    with_line = np.flatnonzero(kept[codes])
    return InstructionLines(rows[with_line], number[codes[with_line]], places)
