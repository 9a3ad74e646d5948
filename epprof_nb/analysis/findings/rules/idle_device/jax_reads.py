"""Finding on lines that wait for arrays of JAX, whose copies other threads make."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.device_work import MEMCPY
from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.analysis.critical_path.changed_durations import Removed
from epprof_nb.analysis.critical_path.saving_without_work import saving_without
from epprof_nb.analysis.findings.finding import Finding, capitalised, op_id_of, place_name
from epprof_nb.analysis.utilisation.blocking_reads import read_text
from epprof_nb.analysis.utilisation.waits import delay_launches
from epprof_nb.util.format import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

_WAITS = ("np.asarray(jax.Array)", "block_until_ready")
"""Functions of JAX behind `float(array)`, `array.item()`, `print(array)` and explicit waits."""


def jax_reads(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on each line that waits for arrays of JAX, so that it launches work late."""
    ops = index.profile.tables["ops"]
    names = ops.names("name")
    is_wait = np.append(np.isin(names.categories, _WAITS), np.False_)[names.codes]
    rows = np.flatnonzero(is_wait & ops.names("source").equals("jax") & has_host_time(ops))
    places = index.cached(Places)
    # An op without a statement around it is its own place.
    place = places.of_op[np.where(index.statement[rows] >= 0, index.statement[rows], rows)]
    for top in np.unique(place).tolist():
        of_place = rows[place == top]
        if delay_launches(index, ops["end_ns"][of_place]):
            yield _finding(index, of_place)


def _finding(index: ProfileIndex, rows: IntArray) -> Finding:
    ops, word = index.profile.tables["ops"], device_word(index.profile.info)
    starts, ends = ops["start_ns"][rows], ops["end_ns"][rows]
    longest = int((ends - starts).argmax())
    where = capitalised(place_name(index, int(rows[longest])))
    removed = Removed(thread=ops["thread_id"][rows], start=starts, end=ends)
    gain = saving_without(index, removed)
    return Finding(
        f"{where} waits for the {word} {plural(len(rows), 'time')}"
        f"{read_text(index, _copies(index, starts, ends))}.",
        gain,
        int(starts[longest]),
        int(ends[longest]),
        kind="wait",
        remedy=f"Keep the values on the {word}, and read them later or less often: JAX then "
        f"launches the next work while the {word} is busy.",
        gain_low_ns=gain // 2,
        op_id=op_id_of(index, int(rows[longest])),
        table="ops",
        rows=partial(np.sort, rows),
        spans=lambda: (starts, ends),
    )


def _copies(index: ProfileIndex, starts: IntArray, ends: IntArray) -> IntArray:
    """Return the rows of the copies to the host that ended during some disjoint waits."""
    activities = index.profile.tables["activities"]
    copies = np.flatnonzero((index.kinds == MEMCPY) & activities.names("copy_kind").equals("DtoH"))
    at = np.searchsorted(np.sort(starts), activities["end_ns"][copies], "right") - 1
    inside = (at >= 0) & (activities["end_ns"][copies] <= np.sort(ends)[at])
    return copies[inside]
