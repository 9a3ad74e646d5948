"""Finding on the line with most host time, in profiles without device work."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.added_time.added_time import added_time, added_to_ops
from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.base.missing_records import statements_lost
from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.analysis.base.op_totals import self_host_ns
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.findings.finding import (
    Finding,
    capitalised,
    op_id_of,
    place_name,
    time_taken,
    without_added,
)
from epprof_nb.analysis.findings.host_waits import (
    WAITS,
    mostly_waited,
    wait_remedy,
)
from epprof_nb.analysis.findings.hot_shares import HOT_ON_HOST
from epprof_nb.analysis.findings.known_waits import wait_of_statements, waits_of_ops
from epprof_nb.analysis.findings.rules.host_work.hot_function import hot_function
from epprof_nb.analysis.findings.rules.host_work.imports import import_statements
from epprof_nb.analysis.steps.turns import are_in_turns, recursion
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.schema import SLEEP
from epprof_nb.util.format import duration, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

MANY, SHORT_NS = 1_000, 50_000
"""A line that runs at least this often, and for less than this time, works value by value."""
_REMEDY = "Make this work faster, do less of it, or do it in parallel, in other processes."
_VALUE_BY_VALUE = (
    "Replace the loop by operations on whole arrays: Python handles each value separately, which "
    "takes most of this time, also where `.item()` or `float(...)` reads one from a tensor."
)


def hot_host_line(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the line that takes most of the host's time, without the ops inside."""
    ops, tree = index.profile.tables["ops"], index.tree
    is_line = (ops["line"] != MISSING) & has_host_time(ops)
    is_line &= ops["start_ns"] >= 0  # not the statement in which the profile began
    is_line &= ~_is_imported(index)
    if not is_line.any():
        return
    added, added_ns = index.cached(added_time), index.cached(added_to_ops)
    places, wall_ns = index.cached(Places), wall_of(index.profile)
    wall_ns -= added.total_ns if added else 0
    place, (wait_op, wait_ns) = places.of_op[:-1], index.cached(waits_of_ops)
    host_ns = self_host_ns(ops, tree.parent)
    # A line that waits for a thread takes its time only if no line of the thread does.
    for waits in (_waits_for_threads(index), _waits_for_threads(index, of_cell=False)):
        waited_ns = sum_by_group(wait_op[waits], wait_ns[waits], len(tree))[:-1]
        own_ns = np.where(is_line, host_ns - waited_ns - added_ns, 0)
        by_place = sum_by_group(place, own_ns, places.count)[:-1]
        top = int(by_place.argmax())
        total = int(by_place[top])
        if total >= HOT_ON_HOST * wall_ns:
            break
    rows = np.flatnonzero((place == top) & is_line)
    # The only line needs no mention.
    if total < max(HOT_ON_HOST * wall_ns, 1) or len(np.unique(place[is_line])) < 2:
        return
    more_ns = int(added_ns[rows].sum())
    longest = int(rows[int(own_ns[rows].argmax())])
    ran = _most_executed(index, rows, own_ns)
    count, word = int(ops["count"][ran].sum()), "execution"
    rounds = _rounds(index, rows)
    if rounds >= MANY:  # the lines of the loop have the same remedy
        count, word = rounds, "round"
        outermost, in_rows = _outermost(index, rows), np.zeros(len(ops), np.bool_)
        in_rows[outermost] = True
        more_ns = int(added_ns[index.tree.nearest_ancestor(in_rows) != MISSING].sum())
        total = int(ops["duration_ns"][outermost].sum()) - more_ns
    is_recursive = _recurs(index, rows)
    many = not (is_recursive and not rounds) and count >= MANY and total < SHORT_NS * count
    if not many and any(hot_function(index)):
        return  # it says more than the line that calls the function
    each = f", {duration(total / count)} each" if many else ""
    known = wait_of_statements(index, rows, int(host_ns[rows].sum()))
    many &= known is None
    waited = known is None and not many and mostly_waited(index, total + more_ns)
    threads = len(np.unique(ops["thread_id"][ran]))
    if threads == 1:  # which executions it was added to is not known if some have no row
        more_ns, total = more_ns + max(total - wall_ns, 0), min(total, wall_ns)
    is_counted = not is_recursive or not statements_lost(index.profile.info)
    least = "" if is_counted else "at least "
    detail = f" in {least}{plural(count, word)}{each}{without_added(total + more_ns, more_ns)}"
    took = time_taken(total, wall_ns, threads, detail)
    remedy = _VALUE_BY_VALUE if many else wait_remedy(index) if waited else _REMEDY
    remedy = known.remedy if known else remedy
    how = known.text if known else WAITS if waited else ""
    yield Finding(
        f"{capitalised(place_name(index, longest))} {took}{how}.",
        min(total, wall_ns),
        int(ops["start_ns"][longest]),
        int(ops["end_ns"][longest]),
        kind="hot line",
        remedy=remedy,
        op_id=op_id_of(index, longest),
        table="ops",
        is_unprofiled=True,
        is_wait=known is not None or waited,
        rows=partial(np.copy, rows),
    )


def _recurs(index: ProfileIndex, rows: IntArray) -> bool:
    """Return whether some statements recur, or are in those that do."""
    around = index.tree.nearest_ancestor(index.cached(recursion).is_recursive)
    return bool((around[rows] != MISSING).any())


def _outermost(index: ProfileIndex, rows: IntArray) -> IntArray:
    """Return those of some rows that are in no other one of them."""
    group = np.full(len(index.tree), MISSING, np.int64)
    group[rows] = 0
    return np.flatnonzero(index.tree.is_outermost(group))


def _waits_for_threads(index: ProfileIndex, *, of_cell: bool = True) -> IntArray:
    """Return the rows of waits that are for a thread, without those of the cell's thread if asked.

    A worker waits for its next work, and a thread that beats for the end: without the wait, the
    cell would take as long. The time of a sleep may be that of work that it stands for.
    """
    waits = index.profile.tables["thread_waits"]
    chosen = ~waits.names("function").equals(SLEEP)
    if not of_cell:
        chosen &= waits["thread_id"] != index.profile.info.get("thread_id", waits["thread_id"])
    return np.flatnonzero(chosen)


def _is_imported(index: ProfileIndex) -> BoolArray:
    """Return which ops are import statements or in one: these have another finding."""
    is_import = np.zeros(len(index.tree), np.bool_)
    is_import[index.cached(import_statements)] = True
    return np.asarray(index.tree.nearest_ancestor(is_import) != MISSING)


def _most_executed(index: ProfileIndex, rows: IntArray, own_ns: IntArray) -> IntArray:
    """Return the rows of the statement of a line that ran most often, then longest.

    A line may have several, one in another: ``def f(): g()`` also runs where it defines ``f``.
    """
    ops = index.profile.tables["ops"]
    names = ops.names("name").codes[rows]
    counts, times = (np.bincount(names, values[rows]) for values in (ops["count"], own_ns))
    of_most: IntArray = rows[names == np.lexsort((times, counts))[-1]]
    return of_most


def _rounds(index: ProfileIndex, loop: IntArray) -> int:
    """Return how often the body of some executions of a statement ran; 0 for no loop."""
    ops = index.profile.tables["ops"]
    in_loop = np.zeros(len(ops) + 1, np.bool_)
    in_loop[loop] = True
    names, parent = ops.names("name").codes, index.tree.parent
    inner = np.flatnonzero(in_loop[parent] & (ops["line"] != MISSING))
    # A statement in itself is a recursive call.
    inner = inner[names[parent[inner]] != names[inner]]
    inner = inner[are_in_turns(index, inner, parent[inner])]
    place = index.cached(Places).of_op[inner]
    return int(sum_by_group(place, ops["count"][inner], index.cached(Places).count).max())
