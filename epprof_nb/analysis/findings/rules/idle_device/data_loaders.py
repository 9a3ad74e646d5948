"""Findings on data loaders: a training loop that waits for data, while its device idles."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.findings.finding import Finding, capitalised, own_line_name, place_name
from epprof_nb.analysis.frameworks.training_phases import is_of_type
from epprof_nb.analysis.utilisation.host_idle import loops_at
from epprof_nb.arrays.intervals import covered_before
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.op_args import arguments
from epprof_nb.util.format import duration, percent, plural

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

IDLE_SHARE = 0.02
"""Minimum share of the wall time in which a statement waits for data, and the device is idle."""
_WORKERS = 4
"""Worker processes that a loader without them could have; at most one per core."""


def waiting_for_data(index: ProfileIndex) -> list[Finding]:
    """Return a finding for each statement that waits for a data loader.

    With device work, the time counts in which the device idles meanwhile. The time that worker
    processes take is not recorded, so the finding does not say why the loader is late.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> waiting_for_data(ProfileIndex(synthetic_profile(activities=100)))  # has no data loader
    []
    """
    ops, tree = index.profile.tables["ops"], index.tree
    waits = np.flatnonzero(is_of_type(index, "data") & has_host_time(ops))
    starts, ends = ops["start_ns"][waits], ops["end_ns"][waits]
    before, until = (covered_before(*index.busy(), times) for times in (starts, ends))
    idle = ends - starts - (until - before)
    statement = tree.nearest_ancestor(ops["line"] != MISSING)[waits]
    # A loop runs its statement again for each batch: the line identifies it.
    line = np.append(ops["line"], MISSING)[statement]
    cell = np.append(ops.names("cell").codes, MISSING)[statement]
    # The loop of a function is known from the stacks of the API calls around the wait.
    loops = loops_at(index, ops["thread_id"][waits], starts + (ends - starts) // 2, waits)
    numbers: dict[tuple[object, ...], int] = {}
    keys = [loop or place for loop, place in zip(loops, zip(cell, line, strict=True), strict=True)]
    place = np.array([numbers.setdefault(key, len(numbers)) for key in keys])
    found = []
    for number in range(len(numbers)):
        rows = np.flatnonzero(place == number)
        loop = loops[int(rows[0])]
        total = int(idle[rows].sum())
        if total < IDLE_SHARE * wall_of(index.profile) or total <= 0:
            continue
        longest = rows[int(idle[rows].argmax())]
        workers = _workers(index, waits[rows])
        low, gain = _saving(index, total, workers)
        found.append(
            Finding(
                _text(index, waits[rows], loop, total, workers),
                gain,
                int(starts[longest]),
                int(ends[longest]),
                kind="data loader",
                remedy=_NO_WORKERS if workers == 0 else _MORE_WORKERS,
                gain_low_ns=low,
                gain_high_ns=total,
                op_id=int(ops["op_id"][waits[longest]]),
                at=(loop[0], loop[2]) if loop else None,
                table="ops",
                rows=partial(waits.__getitem__, rows),
                spans=partial(_times, starts, ends, rows),
            )
        )
    return found


_MORE_WORKERS = (
    "Use more worker processes, fetch batches earlier (prefetch_factor), or prepare them once and "
    "keep them."
)
_NO_WORKERS = (
    "Load batches in worker processes (`num_workers=4`), which work beside the training, or "
    "prepare them once and keep them."
)


def _workers(index: ProfileIndex, waits: IntArray) -> int | None:
    """Return the number of worker processes of the loaders of some waits; None if unknown."""
    known = arguments(index.profile.tables["ops"].names("args"), waits, ["workers"])[0].distinct
    return known[0] if len(known) == 1 and isinstance(known[0], int) else None


def _saving(index: ProfileIndex, waited: int, workers: int | None) -> tuple[int, int]:
    """Return the least and the probable saving, ns.

    Without worker processes, loading takes the time of the training loop. With some, it takes its
    time divided by their number, beside the rest of the loop.
    """
    if workers != 0:
        return 0, waited
    load = index.profile.info.get("load")
    cores = load.get("cores") if isinstance(load, dict) else None
    number = min(_WORKERS, cores) if isinstance(cores, int) and cores > 0 else _WORKERS
    rest = max(wall_of(index.profile) - waited, 0)
    return min(waited, rest) // 2, waited - max(waited // number - rest, 0)


def _times(starts: IntArray, ends: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    return starts[rows], ends[rows]


def _text(
    index: ProfileIndex,
    waits: IntArray,
    loop: tuple[str, str, int] | None,
    waited: int,
    workers: int | None,
) -> str:
    profile, where = index.profile, "the code"
    statement = int(index.statement[waits[0]])
    if loop:
        where = own_line_name(profile, *loop)
    elif statement >= 0:
        where = place_name(index, statement)
    of_loader = f"{plural(len(waits), 'batch', 'batches')} of a data loader"
    if index.is_device_work.any():
        word = capitalised(device_word(profile.info))
        text = f"{word} idle {duration(waited)} while {where} waited for {of_loader}"
    else:
        share = percent(waited / max(wall_of(profile), 1))
        text = f"{capitalised(where)} waited {duration(waited)} ({share}) for {of_loader}"
    if workers is not None:
        text += f" with {plural(workers, 'worker process', 'worker processes')}"
    return f"{text}."
