"""Findings on data loaders: a device that idles while the training loop waits for data."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.analysis.base.source_text import source_line
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.findings.finding import Finding
from epprof_nb.analysis.frameworks.phases import is_of_type
from epprof_nb.arrays.intervals import covered_before
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.op_args import arguments
from epprof_nb.util.format import duration, plural, shorten

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

IDLE_SHARE = 0.02
"""Minimum share of the wall time in which the device is idle while one statement waits for data."""
_CODE_CHARACTERS = 56


def waiting_for_data(index: ProfileIndex) -> list[Finding]:
    """Return a finding for each statement that waits for a data loader while the device idles.

    The time that worker processes take is not recorded, so the finding does not say why the loader
    is late.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> waiting_for_data(ProfileIndex(synthetic_profile(activities=100)))  # has no data loader
    []
    """
    ops, tree = index.profile.tables["ops"], index.tree
    waits = np.flatnonzero(is_of_type(index, "data") & has_host_time(ops))
    if not len(waits) or not index.is_device_work.any():
        return []
    starts, ends = ops["start_ns"][waits], ops["end_ns"][waits]
    before, until = (covered_before(*index.busy(), times) for times in (starts, ends))
    idle = ends - starts - (until - before)
    statement = tree.nearest_ancestor(ops["line"] != MISSING)[waits]
    # A loop runs its statement again for each batch: the line identifies it.
    line = np.append(ops["line"], MISSING)[statement]
    cell = np.append(ops.names("cell").codes, MISSING)[statement]
    found = []
    for place in np.unique(np.stack([cell, line]), axis=1).T:
        rows = np.flatnonzero((cell == place[0]) & (line == place[1]))
        total = int(idle[rows].sum())
        if total >= IDLE_SHARE * wall_of(index.profile) and total > 0:
            longest = rows[int(idle[rows].argmax())]
            text = _text(index, waits[rows], int(statement[rows[0]]), total)
            found.append(
                Finding(
                    text,
                    total,
                    int(starts[longest]),
                    int(ends[longest]),
                    kind="data loader",
                    remedy="Use more worker processes, fetch batches earlier (prefetch_factor), or "
                    "prepare them once and keep them.",
                    op_id=int(ops["op_id"][waits[longest]]),
                    table="ops",
                    rows=partial(waits.__getitem__, rows),
                    spans=partial(_times, starts, ends, rows),
                )
            )
    return found


def _times(starts: IntArray, ends: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    return starts[rows], ends[rows]


def _text(index: ProfileIndex, waits: IntArray, statement: int, idle_ns: int) -> str:
    profile, word = index.profile, device_word(index.profile.info)
    text = f"{word[0].upper()}{word[1:]} idle {duration(idle_ns)} while "
    if statement >= 0:
        ops = profile.tables["ops"]
        line = int(ops["line"][statement])
        (cell,) = ops.names("cell").take(np.array([statement])).to_list()
        source = source_line(profile, cell, line).replace("`", chr(0x2BC))
        code = f" (`{shorten(source, _CODE_CHARACTERS)}`)" if source else ""
        text += f"line {line}{code}"
    else:
        text += "the code"
    text += f" waited for {plural(len(waits), 'batch', 'batches')} of a data loader"
    workers = arguments(profile.tables["ops"].names("args"), waits, ["workers"])[0].distinct
    if len(workers) == 1 and isinstance(workers[0], int):
        text += f" with {plural(workers[0], 'worker process', 'worker processes')}"
    return f"{text}."
