"""Synthetic jobs, generated in pieces: also ones that are larger than memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.data.schema import MISSING
from epprof_nb.files.dataset.manifest import Manifest
from epprof_nb.files.dataset.part import write_part_in_pieces
from epprof_nb.jobs.loading import load_job
from epprof_nb.testing.synthetic import synthetic_profile

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from epprof_nb.data.table import Table
    from epprof_nb.jobs.job import Job
    from epprof_nb.profiles import Profile

_TIMES = ("start_ns", "end_ns")
_IDS = ("op_id", "parent_op_id", "correlation_id")


def synthetic_job(
    folder: str | os.PathLike[str],
    activities: int = 1_000_000,
    ranks: int = 2,
    seed: int = 0,
    *,
    piece: int = 1_000_000,
) -> Job:
    """Generate the folder of a job whose ranks run training loops.

    Parameters
    ----------
    folder
        Folder of the job, without parts; it is created if it does not exist.
    activities
        Number of activities of all ranks together, each with an API call. There is about one op
        per seven activities.
    ranks
        Number of ranks.
    seed
        Seed of the durations and pauses, which differ by rank. The same arguments give the same
        job.
    piece
        Activities that are generated at once; memory is needed for these only.

    Returns
    -------
    job
        The job, whose profiles are read on demand.

    Raises
    ------
    ValueError
        If an argument is too small.
    OSError
        If the folder cannot be written.

    Notes
    -----
    Pieces repeat the loop of `synthetic_profile`: names, sizes and grids have a period of one step,
    so they take almost no space in a file. Times are drawn at random, as on a device: a
    duration within 15 % of the usual one, and each gap between two launches within 2 us. In a
    million rows, durations have an entropy of 15 bits, and the times from start to start, too.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     synthetic_job(folder, activities=200, ranks=2).by_rank()["kernels"].tolist()
    [97, 97]
    """
    if activities < ranks or ranks < 1 or piece < 1:
        raise ValueError(
            "activities must be at least ranks, ranks and piece at least 1, not "
            f"{activities}, {ranks} and {piece}"
        )
    target = Path(folder)
    counts = np.diff(np.linspace(0, activities, ranks + 1).astype(np.int64)).tolist()
    for rank, count in enumerate(counts):
        manifest = Manifest(
            job_id=f"synthetic-{seed}", pid=1_000 + rank, parent_pid=999, rank=rank,
            world_size=ranks, hostname="synthetic", command=("python", "train.py"),
            clock={"boot_id": "synthetic", "time_namespace": None, "error_ns": 0},
        )  # fmt: skip
        pieces = _Pieces(count, piece, (seed, rank))
        # The manifest is written last. Its info is complete by then.
        stated = replace(manifest, info=pieces.info)
        write_part_in_pieces(pieces, target / manifest.folder_name, stated)
    return load_job(target)


class _Pieces:
    """The profiles of consecutive stretches of one loop, as pieces of one profile.

    Attributes
    ----------
    info
        The info of what was iterated over so far.
    """

    def __init__(self, activities: int, piece: int, seed: tuple[int, int]) -> None:
        self._activities, self._piece, self._seed = activities, piece, seed
        self.info: dict[str, Any] = {}

    def __iter__(self) -> Iterator[dict[str, Table]]:
        begin_ns = first_id = 0
        counts: Counter[str] = Counter()
        for number, low in enumerate(range(0, self._activities, self._piece)):
            count = min(self._piece, self._activities - low)
            seed = int(np.random.SeedSequence([*self._seed, number]).generate_state(1)[0])
            profile = synthetic_profile(count, seed)
            yield {
                name: _moved(table, begin_ns, first_id)
                for name, table in profile.tables.items()
                if len(table)
            }
            begin_ns += profile.wall_ns
            first_id += count + 10_000
            counts.update(profile.info["recorded"]["shown"])
            self._add(profile, begin_ns, counts)

    def _add(self, profile: Profile, wall_ns: int, counts: Counter[str]) -> None:
        self.info.update(profile.info)
        recorded = {"launched": dict(counts), "shown": dict(counts), "lost": {}}
        self.info.update(wall_ns=wall_ns, recorded=recorded)


def _moved(table: Table, begin_ns: int, first_id: int) -> Table:
    """Return a table with later times and larger ids, in the order of the starts."""
    names = table.schema.names
    moved = {name: table[name] + begin_ns for name in _TIMES if name in names}
    for name in (name for name in _IDS if name in names):
        moved[name] = np.where(table[name] == MISSING, MISSING, table[name] + first_id)
    order = np.argsort(table["start_ns"], kind="stable")
    return table.replace(**moved).take(order)
