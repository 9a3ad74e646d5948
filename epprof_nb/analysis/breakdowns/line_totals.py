"""LineTotals: device work of each line of the profiled cells, for the source view."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.device_work import KERNEL, MEMCPY, is_device_kind
from epprof_nb.analysis.base.first_of_launch import first_of_launch
from epprof_nb.analysis.base.line_chains import Lines
from epprof_nb.analysis.base.op_status import ran
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.frameworks.instruction_lines import InstructionLines, instruction_lines
from epprof_nb.analysis.frameworks.training_phases import MODULE_TYPES, is_of_type
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.groups import extend_ranges, group_codes, sum_by_group
from epprof_nb.arrays.ids import mask_as_rows, values_at
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.op_args import arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData

_KERNELS_SHOWN = 12
_OPS_LISTED = 1000


@dataclass(slots=True)
class LineTotals:
    """Totals of one line.

    ``cell`` is the cell or file of the line. ``device_ns`` is the time of its kernels, copies
    and memsets without the lines nested in it, such as lines of a function that XLA compiled;
    ``host_ns`` the time for which one of its statements was open; ``count`` the executions
    of its statements, of which a one-line loop has two; ``start_ns`` and ``end_ns`` enclose all
    executions; ``top`` holds up to twelve (name, count, ns) by descending time; ``ops`` the names
    of the ops of a function in a file. A line that no statement marks, in another cell or in a
    file, is one of Python stacks: ``stacks`` has those whose innermost line of the user's code it
    is, ``count`` their launches, and ``host_ns`` is 0.
    """

    cell: str
    line: int
    count: int
    start_ns: int
    end_ns: int
    device_ns: int
    host_ns: int
    kernels: int
    copies: int
    bytes: int
    top: list[tuple[str, int, int]] = field(default_factory=list)
    ops: list[str] = field(default_factory=list)
    stacks: list[int] = field(default_factory=list)


def line_totals(index: ProfileIndex) -> list[LineTotals]:
    """Return the totals of each line that ran, in the order of the source."""
    cells = index.profile.tables["ops"].names("cell")
    lines = Lines(index)
    rows = np.flatnonzero(lines.of_op >= 0)
    places = list(zip(lines.file, lines.number.tolist(), strict=True))
    own = index.cached(StackLines).own
    of_stack = values_at(lines.of_stack, own)
    instructions = instruction_lines(index, set(cells.categories))
    found = _totals(index, rows, lines.of_op[rows], places, instructions, of_stack=of_stack)
    is_statement = dict(zip(places, (lines.statement >= 0).tolist(), strict=True))
    # Lines that only call others have rows in tables, but no work of their own to show.
    return [t for t in found if is_statement.get((t.cell, t.line), True) or t.count]


def function_totals(index: ProfileIndex) -> list[LineTotals]:
    """Return the totals of each op whose function is defined in a file, at its first line.

    A module has the function of its class, the time of its forward and backward pass, and the
    count of its calls.
    """
    info, ops = index.profile.info, index.profile.tables["ops"]
    numbers: dict[tuple[str, int], int] = {}

    def numbered(names: Sequence[str], known: object) -> IntArray:
        """Return the number of the place of each name; `MISSING` for none, and as last element."""
        places = [_place(known.get(name)) if isinstance(known, dict) else None for name in names]
        found = [numbers.setdefault(p, len(numbers)) if p else MISSING for p in places]
        return np.array([*found, MISSING], np.int64)

    names = ops.names("name")
    place = numbered(names.categories, info.get("op_places"))[names.codes]
    modules = np.flatnonzero(is_of_type(index, *MODULE_TYPES))
    classes = arguments(ops.names("args"), modules, ["class"])[0]
    place[modules] = numbered(classes.distinct, info.get("class_places"))[classes.codes]
    rows = np.flatnonzero(place >= 0)
    cells = set(ops.names("cell").categories)
    files = [name for name in index.profile.sources if name not in cells]
    instructions = instruction_lines(index, files)
    if not len(rows) and not len(instructions.rows):
        return []
    groups, first = group_codes(place[rows])
    of_number = list(numbers)
    places = [of_number[number] for number in place[rows[first]].tolist()]
    totals = _totals(index, rows, groups, places, instructions)
    _, example = group_codes(groups, names.codes[rows])
    names_of: dict[tuple[str, int], list[str]] = {}
    of_example = names.take(rows[example]).to_list()
    for group, name in zip(groups[example].tolist(), of_example, strict=True):
        names_of.setdefault(places[group], []).append(str(name))
    for function in totals:
        function.ops = names_of.get((function.cell, function.line), [])[:_OPS_LISTED]
    return totals


def _place(value: object) -> tuple[str, int] | None:
    """Return file and line of a place in a profile's info; None if it is malformed."""
    if not isinstance(value, dict):
        return None
    file, line = value.get("file"), value.get("line")
    return (file, line) if isinstance(file, str) and isinstance(line, int) else None


def _totals(
    index: ProfileIndex,
    rows: IntArray,
    groups: IntArray,
    places: list[tuple[str, int]],
    instructions: InstructionLines,
    *,
    of_stack: IntArray | None = None,
) -> list[LineTotals]:
    """Sum up the ops at `rows` by group.

    Parameters
    ----------
    index
        Index of the profile.
    rows, groups
        int64 arrays of one length: ops, and the group of each.
    places
        Cell and line of each group.
    instructions
        Instructions with a line of their own. Instructions of a command buffer have the work of its
        replays.
    of_stack
        int64 array: the group of each stack, and `MISSING` as last element. It has precedence over
        the group of the op. None without stacks.
    """
    profile = index.profile
    ops = profile.tables["ops"]
    numbers = {place: number for number, place in enumerate(places)}
    of_code = [numbers.setdefault(place, len(numbers)) for place in instructions.places]
    rows = np.concatenate([rows, instructions.rows])
    groups = np.concatenate([groups, np.array(of_code, np.int64)[instructions.codes]])
    n = len(numbers)
    group_of_op = np.full(len(ops) + 1, MISSING, np.int64)
    group_of_op[rows] = groups
    group_of_work = group_of_op
    if len(rows):  # a script has no statements
        owner = index.tree.nearest_ancestor(group_of_op[:-1] >= 0)
        group_of_work = group_of_op[np.append(owner, MISSING)]
    parts = _activity_sums(index, group_of_work, _only(group_of_op, instructions.rows), of_stack)
    of_group = {
        name: sum_by_group(parts["group"], parts[name], n)[:-1].tolist()
        for name in ("ns", "kernels", "copies", "bytes")
    }
    starts, ends = np.full(n, np.iinfo(np.int64).max), np.full(n, np.iinfo(np.int64).min)
    launches, stacks = np.zeros(n, np.int64), [list[int]() for _ in range(n)]
    if of_stack is not None:
        marked = np.zeros(n + 1, np.bool_)
        marked[groups] = True
        unmarked = np.where(marked[of_stack], MISSING, of_stack)
        launches = _launches_of_stacks(index, unmarked, starts, ends)
        for stack in np.flatnonzero(unmarked[:-1] >= 0).tolist():
            stacks[of_stack[stack]].append(stack)
    # An instruction that created a part of a command buffer may have run before the profile.
    in_profile = ran(ops)
    shown = in_profile[rows]
    of_shown = rows[shown]
    extend_ranges(starts, ends, groups[shown], ops["start_ns"][of_shown], ops["end_ns"][of_shown])
    never = starts > ends
    starts[never], ends[never] = 0, min(wall_of(profile), np.iinfo(np.int64).max)
    # The body of a one-line loop runs within the loop, on the same line.
    outer = np.flatnonzero(index.tree.is_outermost(group_of_op[:-1]) & in_profile)
    host_ns = sum_by_group(group_of_op[outer], ops["duration_ns"][outer], n)[:-1]
    counts = np.where(is_of_type(index, "recompute", "backward", "hlo"), 0, ops["count"])
    columns = (
        (sum_by_group(groups, counts[rows], n)[:-1] + launches).tolist(),
        starts.tolist(), ends.tolist(),
        of_group["ns"], host_ns.tolist(),
        of_group["kernels"], of_group["copies"], of_group["bytes"], _top(profile, parts, n),
    )  # fmt: skip
    totals = [LineTotals(*place, *values) for place, *values in zip(numbers, *columns, strict=True)]
    for line, of_line in zip(totals, stacks, strict=True):
        line.stacks = of_line
    order = {cell: i for i, cell in enumerate(profile.sources)}
    return sorted(totals, key=lambda t: (order.get(t.cell, len(order)), t.cell, t.line))


def _launches_of_stacks(
    index: ProfileIndex, of_stack: IntArray, starts: IntArray, ends: IntArray
) -> IntArray:
    """Return the launches of each group of stacks, and extend the groups' time ranges by them."""
    activities = index.profile.tables["activities"]
    group = of_stack[activities["stack_id"]]
    group[~index.is_device_work] = MISSING
    extend_ranges(starts, ends, group, activities["start_ns"], activities["end_ns"])
    first = index.cached(first_of_launch).astype(np.int64)
    return sum_by_group(group, first, len(starts))[:-1]


def _only(group_of_op: IntArray, rows: IntArray) -> IntArray | None:
    """Return the groups of some ops, `MISSING` for the others; None if there are none."""
    if not len(rows):
        return None
    groups = np.full(len(group_of_op), MISSING, np.int64)
    groups[rows] = group_of_op[rows]
    return groups


def _activity_sums(
    index: ProfileIndex,
    group_of_op: IntArray,
    group_of_instruction: IntArray | None,
    group_of_stack: IntArray | None = None,
) -> dict[str, IntArray]:
    """Sum up activities by group and name, one chunk of the table at a time.

    Parameters
    ----------
    index
        Index of the profile.
    group_of_op
        int64 array: the group to which each op's activities belong, `MISSING` for none; the last
        element is for activities without an op.
    group_of_instruction
        int64 array, likewise: the group of the activities that the op captured; None for none.
    group_of_stack
        int64 array, likewise: the group of the activities of each stack.

    Returns
    -------
    sums
        int64 columns: ``group``; ``name``, a code; ``count`` of activities; their ``ns``; the
        ``kernels`` and ``copies`` among them; ``bytes`` copied. A group and name has one row for
        each chunk in which it occurs.
    """
    activities = index.profile.tables["activities"]
    names = activities.names("short_name").codes
    parts = [np.empty((7, 0), np.int64)]
    for chunk in chunks(len(activities)):
        group, kinds = group_of_op[index.activity_op[chunk]], index.kinds[chunk]
        if group_of_stack is not None:
            of_stack = group_of_stack[activities["stack_id"][chunk]]
            group = np.where(of_stack >= 0, of_stack, group)
        if group_of_instruction is not None:
            captured = group_of_instruction[index.tree.rows(activities["capture_op_id"][chunk])]
            group = np.where(captured >= 0, captured, group)
        rows = mask_as_rows((group >= 0) & is_device_kind(kinds))
        group, kinds, name = group[rows], kinds[rows], names[chunk][rows]
        pairs, first = group_codes(group, name)
        is_copy = kinds == MEMCPY
        time = activities["end_ns"][chunk][rows] - activities["start_ns"][chunk][rows]
        measures = (
            np.ones(len(kinds), np.int64),
            np.maximum(time, 0),
            (kinds == KERNEL).astype(np.int64),
            is_copy.astype(np.int64),
            np.where(is_copy, np.maximum(activities["bytes"][chunk][rows], 0), 0),
        )
        sums = [sum_by_group(pairs, values, len(first))[:-1] for values in measures]
        parts.append(np.stack([group[first], name[first], *sums]))
    columns = ("group", "name", "count", "ns", "kernels", "copies", "bytes")
    return dict(zip(columns, np.concatenate(parts, axis=1), strict=True))


def _top(
    profile: ProfileData, parts: dict[str, IntArray], n: int
) -> list[list[tuple[str, int, int]]]:
    """Return each group's activities by name, by descending time."""
    names = profile.tables["activities"].names("short_name")
    pairs, first = group_codes(parts["group"], parts["name"])
    time = sum_by_group(pairs, parts["ns"], len(first))[:-1]
    count = sum_by_group(pairs, parts["count"], len(first))[:-1]
    name_of_code = [*names.categories, "(no name)"]
    top: list[list[tuple[str, int, int]]] = [[] for _ in range(n)]
    for i in np.argsort(-time, kind="stable").tolist():
        of_group = top[parts["group"][first[i]]]
        if len(of_group) < _KERNELS_SHOWN:
            of_group.append((name_of_code[parts["name"][first[i]]], int(count[i]), int(time[i])))
    return top
