"""Cost of recording a Dask cluster: tasks of 1 ms on two workers, and an idle session.

Rounds alternate the same tasks without a profile, with a profile, and with Dask's
`performance_report` (if Bokeh is installed), in turn first. The figures are medians of the ratios
within a round, with bounds of 95 % by the bootstrap, and the time that a task takes longer. The
begin and the end of a session are not part of the tasks; they are measured with an idle session.
Workers, scheduler and client are processes and threads of their own: with fewer than 4 cores they
wait for each other, and the ratios are larger than those of a server.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

from distributed import Client, LocalCluster, performance_report

import epprof_nb
from tests.benchmarks.shared.harness import header, median_bounds, paired

TASK_S = 1e-3


def spin(number: int) -> int:
    """Keep the thread busy for the time of a task."""
    end = time.perf_counter() + TASK_S
    while time.perf_counter() < end:
        pass
    return number


def run(client: Client, tasks: int) -> float:
    """Return the seconds that the tasks take."""
    began = time.perf_counter()
    client.gather(client.map(spin, range(tasks), pure=False))
    return time.perf_counter() - began


def recorded(client: Client, tasks: int) -> float:
    """Return the seconds that they take while the workers are recorded."""
    with epprof_nb.cluster(client).profile() as job:
        seconds = run(client, tasks)
    counted = int(job.by_task()["count"].sum())
    if counted != tasks:
        raise SystemExit(f"{counted} of {tasks} tasks were recorded")
    return seconds


def reported(client: Client, tasks: int) -> float:
    """Return the seconds that they take in a report of Dask."""
    with (
        tempfile.TemporaryDirectory() as folder,
        performance_report(filename=os.fspath(Path(folder, "report.html"))),
    ):
        return run(client, tasks)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    header(__file__)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=given.threads, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        variants = {"plain": run, "profile": recorded}
        if importlib.util.find_spec("bokeh"):
            variants["performance_report"] = reported
        else:
            print("Without Bokeh, performance_report is left out: pip install bokeh")
        for variant in variants.values():  # imports what it needs
            variant(client, 100)
        results = paired(
            {name: partial(variant, client, given.tasks) for name, variant in variants.items()},
            given.rounds,
        )
        rate = given.tasks / statistics.median(results["plain"])
        print(f"{given.tasks} tasks of 1 ms, {rate:.0f} per second without a profile")
        for name in [*variants][1:]:
            pairs = [*zip(results[name], results["plain"], strict=True)]
            found = [s / p for s, p in pairs]
            low, high = median_bounds(found)
            longer = 1e6 * statistics.median(s - p for s, p in pairs) / given.tasks
            print(
                f"{name}: {statistics.median(found):.3f} ({low:.3f} to {high:.3f}), "
                f"{longer:.0f} us a task"
            )
        idle = []
        for _ in range(given.rounds):
            began = time.perf_counter()
            with epprof_nb.cluster(client).profile():
                pass
            idle.append(1e3 * (time.perf_counter() - began))
        low, high = median_bounds(idle)
        print(f"idle session: {statistics.median(idle):.0f} ms ({low:.0f} to {high:.0f})")


if __name__ == "__main__":
    main()
