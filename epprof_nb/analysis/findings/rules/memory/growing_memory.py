"""Finding on memory that grows from step to step, with the line that allocates what stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.device_work import KERNEL
from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.base.stack_lines import StackLines, enclosing_function
from epprof_nb.analysis.findings.finding import Finding, launcher_name, op_id_of, own_line_name
from epprof_nb.analysis.memory.block_places import block_stacks, code_lines, waited_for_work
from epprof_nb.analysis.memory.memory_peak import ALWAYS, ALWAYS_BEFORE, InUse
from epprof_nb.analysis.steps.allocating_loops import allocation_turns
from epprof_nb.analysis.steps.iterations import MIN_ITERATIONS
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import percent, plural, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

_LEAST_A_TURN = 4096
"""Minimum growth from one turn of the loop to the next, bytes: a list of losses needs less."""
_LEAST_BYTES = 1 << 20
"""Minimum growth in the profile, bytes."""
_PARTS = 5
"""Parts of the loop, each of which must grow."""
_LEAST_OF_MEAN = 0.1
"""Minimum growth of each part, as a share of the mean growth."""
_SLOWING = 0.5
"""Minimum growth of the last two parts, as a share of the growth of the first two.

A cache that fills grows less and less.
"""
_MAX_PLACES = 50
"""Maximum number of lines: the ones with most of the memory in use at the end."""
_KEPT_BY_MODELS = ("parameter", "gradient", "optimizer state")


class Growth(NamedTuple):
    """Memory that grows from turn to turn of a loop.

    ``places`` are the numbers of the lines that allocate what stays, as in `Places`, those that
    allocate most first; ``a_turn`` has the mean growth by each in a turn, bytes, float64; ``rows``
    are the blocks that stay until the end of the loop, int64, ascending.
    """

    places: list[int]
    a_turn: npt.NDArray[np.float64]
    rows: IntArray


def growth(index: ProfileIndex) -> Growth | None:
    """Return the memory that grows from turn to turn; None if none does.

    A block stays if it is in use at the end of a turn after its allocation. What a
    place keeps must grow until the end of the loop. A loop that runs no kernels only loads data.
    """
    blocks, in_use = index.profile.tables["memory_blocks"], index.cached(InUse)
    found = index.cached(allocation_turns)
    ends, n = found.end, len(found.end)
    if not len(blocks) or n < MIN_ITERATIONS or not _has_kernels(index, found.start, found.end):
        return None
    # The first end of a turn after the one that allocated the block, and the first not reached.
    first = np.searchsorted(ends, in_use.begin) + 1
    last = np.searchsorted(ends, in_use.end)
    category = blocks.names("category")
    is_of_model = np.array([*(c in _KEPT_BY_MODELS for c in category.categories), False])
    stays = (in_use.begin != ALWAYS_BEFORE) & ~is_of_model[category.codes] & (last >= first)
    # What was allocated before the loop is not the loop's.
    stays &= (in_use.begin >= found.start[0]) & ~waited_for_work(index)
    rows = np.flatnonzero(stays)
    place = index.cached(Places).of(
        index.cached(block_stacks)[rows], index.tree.rows(blocks["op_id"][rows])
    )
    nbytes, at_end = blocks["bytes"], last[rows] == n
    left = sum_by_group(place[at_end], nbytes[rows[at_end]], index.cached(Places).count + 1)
    # Of the last turn, what is released soon after does not stay.
    is_last, is_kept = first[rows] == n, in_use.end[rows] == ALWAYS
    grown: dict[int, float] = {}
    for one in np.argsort(-left, kind="stable")[:_MAX_PLACES].tolist():
        if left[one] < _LEAST_BYTES:
            break
        mine = rows[place == one]
        change = np.zeros(n + 1, np.int64)
        np.add.at(change, first[mine], nbytes[mine])
        np.add.at(change, last[mine], -nbytes[mine])
        kept = _kept(np.cumsum(change[:n])[1:])
        if _grows(kept):
            of_place = (place == one) & at_end
            if (is_kept & ~is_last & of_place).any():
                at_end &= ~of_place | ~is_last | is_kept
            grown[one] = float(nbytes[rows[of_place & at_end]].sum()) / n
    if not grown:
        return None
    places = sorted(grown, key=lambda one: -grown[one])
    shown = rows[at_end & np.isin(place, places)]
    return Growth(places, np.array([grown[one] for one in places]), shown)


def growing_memory(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on memory that grows from step to step."""
    found = index.cached(growth)
    if found is None:
        return
    blocks = index.profile.tables["memory_blocks"]
    loop = index.cached(allocation_turns)
    op, stack = _source(index, found)
    where = launcher_name(index, stack, op) or "code outside of all statements"
    a_turn, n = float(found.a_turn.sum()), len(loop.end)
    share = float(found.a_turn[0]) / a_turn
    others = len(found.places) - 1
    of_it = "all of it" if not others else f"{percent(share)} of it"
    also = f", {plural(others, 'other line')} the rest" if others else ""
    word = device_word(index.profile.info)
    is_torch = any(
        name is not None and name.startswith("torch")
        for name in blocks.names("pool").take(found.rows[:1]).to_list()
    )
    graph = "the graph of a loss (append `loss.item()` instead), " if is_torch else ""
    yield Finding(
        f"{word[0].upper()}{word[1:]} memory grows by {size(round(a_turn))} from {loop.unit} to "
        f"{loop.unit}, to {size(int(blocks['bytes'][found.rows].sum()))} more after {n:,}: {where} "
        f"allocates {of_it}{also}, and it is not released.{_callers(index, found)}",
        0,
        int(loop.start[0]),
        int(loop.end[-1]),
        kind="growing memory",
        remedy=f"Release it in each {loop.unit}: a list, {graph}a cache without a limit or a "
        "closure may keep it.",
        op_id=op_id_of(index, op),
        stack_id=stack,
        table="memory_blocks",
        rows=lambda: found.rows,
    )


def _callers(index: ProfileIndex, found: Growth) -> str:
    """Return which line of the cell calls the main line most, if it is in a function."""
    blocks = index.profile.tables["memory_blocks"]
    stack = index.cached(block_stacks)[found.rows]
    op = index.tree.rows(blocks["op_id"][found.rows])
    mine = np.flatnonzero(index.cached(Places).of(stack, op) == found.places[0])
    lines = code_lines(index, stack[mine], op[mine])
    group, first = group_codes(lines.caller_cell.codes, lines.caller_line)
    nbytes = sum_by_group(group, blocks["bytes"][found.rows[mine]], len(first))[: len(first)]
    main = lines.take(first[[int(nbytes.argmax())]])
    cell, line = main.caller_cell.to_list()[0], int(main.caller_line[0])
    if cell is None or (main.cell.to_list()[0], int(main.line[0])) == (cell, line):
        return ""
    of_it = "" if len(first) == 1 else f", for {percent(float(nbytes.max() / nbytes.sum()))} of it"
    caller = own_line_name(index.profile, cell, "<module>", line)
    between = _line_between(index, int(main.frame[0]))
    return f" It was called in {f'{between}, from ' if between else ''}{caller}{of_it}."


def _line_between(index: ProfileIndex, frame: int) -> str:
    """Return the line that calls a line of a function, if it is in a function, too."""
    lines = index.cached(StackLines)
    above = int(lines.own[lines.parent[frame]]) if frame != MISSING else MISSING
    if above == MISSING or above == lines.caller[frame]:
        return ""
    rows = np.array([above, frame])
    (file, of), (function, called) = (
        names.take(rows).to_list() for names in (lines.file, lines.function)
    )
    if file is None or function is None:
        return ""
    if file == of and enclosing_function(function) == enclosing_function(called or ""):
        return ""  # a comprehension of the function
    return own_line_name(index.profile, file, function, int(lines.line[above]))


def _source(index: ProfileIndex, found: Growth) -> tuple[int, int]:
    """Return op and stack of the last block that the main line allocated; `MISSING` for none."""
    blocks = index.profile.tables["memory_blocks"]
    stack = index.cached(block_stacks)[found.rows]
    op = index.tree.rows(blocks["op_id"][found.rows])
    at = np.flatnonzero(index.cached(Places).of(stack, op) == found.places[0])[-1]
    return int(op[at]), int(stack[at])


def _has_kernels(index: ProfileIndex, start: IntArray, end: IntArray) -> bool:
    """Return whether the loop launched kernels."""
    tables = index.profile.tables
    call = index.calls.rows(tables["activities"]["correlation_id"][index.kinds == KERNEL])
    begin = tables["api_calls"]["start_ns"][call[call != MISSING]]
    return bool(((begin >= start[0]) & (begin <= end[-1])).any())


def _kept(nbytes: IntArray) -> IntArray:
    """Return the bytes below which the memory never falls again, at the end of each turn."""
    kept: IntArray = np.minimum.accumulate(nbytes[::-1])[::-1]
    return kept


def _grows(kept: IntArray) -> bool:
    """Return whether all parts of the loop grow, the last ones about as much as the first ones."""
    at = np.linspace(0, len(kept) - 1, _PARTS + 1).round().astype(np.int64)
    parts = np.diff(kept[at])
    total = int(parts.sum())
    if total < max(_LEAST_BYTES, _LEAST_A_TURN * (len(kept) - 1)):
        return False
    is_steady: BoolArray = parts >= _LEAST_OF_MEAN * total / _PARTS
    return bool(is_steady.all() and parts[-2:].sum() >= _SLOWING * parts[:2].sum())
