"""Analyses of a job with more activities than memory, in a folder.

A process of its own makes each analysis, so that its greatest memory is known: the benchmark fails
if that exceeds ``--memory``. Times are also ratios to one pass over the bytes of the activities
(`sha256`), which the same process makes first. The folder is generated if it does not exist, and is
kept: ``python -m tests.benchmarks.large_job FOLDER --activities 20000000``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

import epprof_nb
from epprof_nb.jobs.job import Job
from epprof_nb.testing import synthetic_job, synthetic_profile
from tests.benchmarks.shared.harness import header

if TYPE_CHECKING:
    from collections.abc import Callable

BY_KERNEL = """
    select name, count(*) n, sum(duration_ns) device_ns from activities
    where kind = 'kernel' group by name order by device_ns desc"""


def window(job: Job, max_bytes: int) -> None:
    """Read a hundredth of a second in the middle of the job."""
    middle = job.end_ns // 2
    job.sql(
        "select rank, name, start_ns, duration_ns from activities "
        f"where start_ns between {middle} and {middle + 10_000_000}",
        max_bytes=max_bytes,
    )


ANALYSES: dict[str, Callable[[Job, int], object]] = {
    "by kernel": lambda job, max_bytes: job.sql(BY_KERNEL, max_bytes=max_bytes),
    "busy and idle": lambda job, _: job.by_rank(),
    "by op": lambda job, _: job.by_op(),
    "by task": lambda job, _: job.by_task(),
    "window": window,
}


def measure(folder: Path, name: str, max_bytes: int) -> None:
    """Make an analysis once, and print its seconds and greatest memory as JSON."""
    began = time.perf_counter()
    for path in folder.glob("*/activities.parquet"):
        with path.open("rb") as file:
            hashlib.file_digest(file, "sha256")
    one_pass = time.perf_counter() - began
    ANALYSES[name](Job({0: synthetic_profile(activities=100)}), max_bytes)  # imports what it needs
    job = epprof_nb.load(folder)
    assert isinstance(job, Job)
    began = time.perf_counter()
    ANALYSES[name](job, max_bytes)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "one_pass": one_pass, "peak": peak}))


def entropy(values: np.ndarray) -> float:
    """Return the entropy of the values in bits, as far as their number shows it."""
    _, counts = np.unique(values, return_counts=True)
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def describe(folder: Path) -> int:
    """Print the bytes a row of each table and the entropy of the times; return the activities."""
    rows = dict.fromkeys(("activities", "api_calls", "ops"), 0)
    size = dict(rows)
    for name in rows:
        for path in folder.glob(f"*/{name}.parquet"):
            rows[name] += pq.read_metadata(path).num_rows
            size[name] += path.stat().st_size
        of_row = size[name] / max(rows[name], 1)
        print(f"  {name:12} {rows[name]:13,} rows   {of_row:5.2f} bytes a row")
    first = next(iter(sorted(folder.glob("*/activities.parquet"))))
    group = pq.ParquetFile(first).read_row_group(0, columns=["start_ns", "duration_ns"])
    starts, durations = (group.column(i).to_numpy() for i in range(2))
    print(
        f"  entropy of a million rows: {entropy(np.diff(starts)):.1f} bits from start to start, "
        f"{entropy(durations):.1f} bits of the durations\n"
    )
    return rows["activities"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--activities", type=int, default=20_000_000)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", type=float, default=2.0, help="limit in GB")
    parser.add_argument("--one", choices=ANALYSES, help="one analysis, in this process")
    given = parser.parse_args()
    memory = int(given.memory * 1e9)
    if given.one:
        measure(given.folder, given.one, memory // 2)
        return
    header(__file__)
    if not given.folder.exists():
        synthetic_job(given.folder, given.activities, given.ranks)
    activities = describe(given.folder)
    too_much = []
    for name in ANALYSES:
        command = [sys.executable, "-m", __spec__.name, str(given.folder), "--one", name,
                   "--memory", str(given.memory)]  # fmt: skip
        found = [
            json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            for _ in range(given.rounds)
        ]
        seconds = statistics.median(one["seconds"] for one in found)
        ratio = statistics.median(one["seconds"] / one["one_pass"] for one in found)
        peak = max(one["peak"] for one in found)
        print(
            f"  {name:14} {seconds:7.2f} s   {ratio:6.2f} of one pass   "
            f"{1e9 * seconds / activities:7.1f} s per 1,000 million   {peak / 1e9:5.2f} GB at most"
        )
        too_much += [name] * (peak > memory)
    if too_much:
        raise SystemExit(f"more than {given.memory:g} GB: {', '.join(too_much)}")


if __name__ == "__main__":
    main()
