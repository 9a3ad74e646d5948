"""Cost of a profile of millions of launches, each in an op of its own, after its code has ended.

The host device records the launches. The time to end the recording and to join it includes the
host device's own log, which is written in Python; what the join takes of it is printed as well.
Each analysis has a new profile, which has no caches; the median of the rounds counts. On two cores:
``taskset -c 0,1 python -m tests.benchmarks.large_profile``.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import time
from typing import TYPE_CHECKING

import numpy as np

import epprof_nb
from epprof_nb import host, op
from epprof_nb.profiles import Profile
from tests.benchmarks.shared.harness import header

if TYPE_CHECKING:
    from collections.abc import Callable

ANALYSES: dict[str, Callable[[Profile], object]] = {
    "by_op": Profile.by_op,
    "first picture": Profile._repr_mimebundle_,
    "insights": Profile.insights,
}


def recorded(launches: int) -> Profile:
    """Record launches on the host device, and print the time until the profile exists."""
    small = host.to_device(np.ones(16, np.float32))
    with epprof_nb.profile() as profile:
        for _ in range(launches):
            with op("launch"):
                host.launch(lambda _: None, small)
        host.synchronize()
        ended, before = time.perf_counter(), os.times()
    took = time.perf_counter() - ended
    show("stop and join", [took], [_processor_since(before)])
    cost = profile.info["profiling_cost"]
    print(f"  {'  of it, the join':20} {cost['join_ns'] / 1e9:6.2f} s")
    return profile


def show(name: str, seconds: list[float], processor: list[float]) -> None:
    """Print medians and the greatest memory that the process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"  {name:20} {statistics.median(seconds):6.2f} s ({min(seconds):.2f} - {max(seconds):.2f})"
        f"   {statistics.median(processor):6.2f} s of processor time   {peak:5.2f} GB at most"
    )


def _processor_since(before: os.times_result) -> float:
    now = os.times()
    return now.user + now.system - before.user - before.system


def main() -> None:
    """Print one row per step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launches", type=float, default=3e6)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    header(f"A profile of {given.launches:,.0f} launches and as many ops")
    profile = recorded(int(given.launches))
    print(
        "  "
        + ", ".join(f"{len(table):,} {name}" for name, table in profile.tables.items() if table)
    )
    for name, analyse in ANALYSES.items():
        seconds, processor = [], []
        for _ in range(given.rounds):
            new = Profile(profile.tables, profile.info, profile.sources)
            began, before = time.perf_counter(), os.times()
            analyse(new)
            seconds.append(time.perf_counter() - began)
            processor.append(_processor_since(before))
        show(name, seconds, processor)


if __name__ == "__main__":
    main()
