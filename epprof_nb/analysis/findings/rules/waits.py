"""Findings on lines that make the host wait, so that it launches the next work late."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.places import Places, lines_at
from epprof_nb.analysis.base.source_text import source_line
from epprof_nb.analysis.findings.finding import (
    Finding,
    capitalised,
    launcher_name,
    op_id_of,
    stack_of,
)
from epprof_nb.analysis.utilisation.reads import read_text, reads_of
from epprof_nb.analysis.utilisation.waits import find_waits
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import duration, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

MIN_WAITS = 3
"""Minimum number of waits at one place: each but the last delays a launch."""

_REMEDY = (
    "Read the value later, or less often, so that the next work is launched while the {word} is "
    "busy."
)
_REMEDY_OF_RUNS = (
    "Keep the outputs on the {word} (`run_with_iobinding`) and read them later, or run the session "
    "from several threads, so that the next work is launched while the {word} is busy."
)
"""A run of an ONNX Runtime session waits for the outputs that it returns as NumPy arrays."""
_SYNCHRONISING = (
    # A dict also has a method `get`, but it takes a key.
    re.compile(r"\.(?:item|cpu|numpy|tolist|synchronize|block_until_ready)\(|\.get\(\)"),
    re.compile(r"\b(?:to_host|asnumpy|synchronize)\("),
    re.compile(r"\b(?:float|int|bool|print)\("),
)
"""Calls that copy a value to the host and wait for it, the most specific ones first."""


def waiting_lines(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on each place whose waits delay the next launch."""
    found, places = index.cached(find_waits), index.cached(Places)
    place = places.of_calls(found.call)
    avoidable = sum_by_group(place, found.avoidable, places.count + 1)[:-1]
    for top in np.flatnonzero(avoidable).tolist():
        of_place = np.flatnonzero((place == top) & (found.avoidable > 0))
        if len(of_place) >= MIN_WAITS:
            yield _finding(index, of_place)


def _finding(index: ProfileIndex, waits: IntArray) -> Finding:
    found, tables = index.cached(find_waits), index.profile.tables
    calls, activities = tables["api_calls"], tables["activities"]
    rows = found.call[waits]
    avoidable = found.avoidable[waits]
    gain, idle = int(avoidable.sum()), int(found.idle_after[waits].sum())
    op, stack = int(index.call_op[rows[0]]), stack_of(index, "api_calls", int(rows[0]))
    word = device_word(index.profile.info)
    call = _call_of(index, op, stack)
    where = launcher_name(index, stack, op) or "the code"
    read = read_text(index, reads_of(index, rows))
    waited = f"waits for the {word} in `{call}`" if call else f"waits for the {word}"
    # A statement without a waiting call waits for the outputs of its runs.
    is_of_run = _is_in_run(index, op) or (not call and _has_run(index, op))
    longest = int(avoidable.argmax())
    idle_end = activities["start_ns"][found.next_row[waits]]
    idle_start = idle_end - found.idle_after[waits]
    return Finding(
        f"{capitalised(where)} {waited} {plural(len(waits), 'time')}{read}; after that the {word} "
        f"is idle for {duration(idle)} until the next launch.",
        gain,
        int(calls["start_ns"][rows[longest]]),
        int(activities["start_ns"][found.next_row[waits[longest]]]),
        kind="wait",
        remedy=(_REMEDY_OF_RUNS if is_of_run else _REMEDY).format(word=word),
        # One of the waits has nothing to overlap with if it is the last one.
        gain_low_ns=gain - int(avoidable.max()),
        gain_high_ns=min(int(found.busy[waits].sum()), idle),
        op_id=op_id_of(index, op),
        stack_id=stack,
        table="api_calls",
        rows=lambda: np.sort(rows),
        spans=lambda: (idle_start, idle_end),
    )


def _is_in_run(index: ProfileIndex, op: int) -> bool:
    """Return whether the op at row `op` is in an ONNX Runtime session, or is one."""
    of_session = index.profile.tables["ops"].names("category").equals("session")
    return op >= 0 and bool(index.tree.nearest_ancestor(of_session)[op] >= 0)


def _has_run(index: ProfileIndex, op: int) -> bool:
    """Return whether the statement of the op at row `op` ran an ONNX Runtime session."""
    statement = int(index.statement[op]) if op >= 0 else MISSING
    of_session = index.profile.tables["ops"].names("category").equals("session")
    of_statement = index.statement[: len(of_session)] == statement
    return statement >= 0 and bool((of_session & of_statement).any())


def _call_of(index: ProfileIndex, op: int, stack: int) -> str:
    """Return the waiting call in the source of a stack's or an op's line, such as ``.item()``."""
    text = _line_of(index, op, stack)
    for pattern in _SYNCHRONISING:
        if match := pattern.search(text):
            end = "" if match[0].endswith(")") else ")" if match[0].startswith(".") else "...)"
            return match[0] + end
    return ""


def _line_of(index: ProfileIndex, op: int, stack: int) -> str:
    """Return the source of a stack's or an op's line."""
    cells, lines = lines_at(index, np.array([stack]), np.array([op]))
    if lines[0] < 0:
        return ""
    text = source_line(index.profile, cells.to_list()[0], int(lines[0]))
    if text or stack >= 0:
        return text
    name = index.profile.tables["ops"].names("name")
    return name.take(index.statement[[op]]).to_list()[0] or ""
