"""`Profile.what_if` of threads that work for each other, against programs without one of their ops.

::

    python -m tests.benchmarks.thread_savings [--recordings 5] [--rounds 21]

A loader and a writer behind queues, a pipeline of pools, threads with a barrier and a lock, and
threads that compute under the GIL. The
truth is that of runs in which the op does nothing, in turns with whole ones and with recordings
(lower quartiles). Fails if it is within the bounds, give or take 8 % of the wall time, in less than
four of five recordings. The width is that between the bounds.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import queue
import statistics
import threading
import time
from typing import TYPE_CHECKING

import epprof_nb
from epprof_nb import host
from tests.benchmarks.shared.harness import header

if TYPE_CHECKING:
    from collections.abc import Callable

MARGIN, MIN_WITHIN = 0.08, 0.8
left_out: set[str] = set()
"""Ops that do nothing in this run."""


def work(name: str, ms: float) -> None:
    """Take some time in an op, unless it is left out."""
    with epprof_nb.op(name):
        if name not in left_out:
            time.sleep(ms / 1e3)


def run_all(*targets: Callable[[], None]) -> list[threading.Thread]:
    """Start a thread for each function."""
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    return threads


def behind_queues() -> None:
    """Load, compute on a device, and write."""
    loaded, written, stream = queue.Queue[int](2), queue.Queue[int](1), host.Stream()

    def load() -> None:
        for number in range(8):
            work("read", 2)
            loaded.put(number)

    def write() -> None:
        while written.get() >= 0:
            work("write", 5)

    threads = run_all(load, write)
    for number in range(8):
        loaded.get()
        if "step" not in left_out:
            with epprof_nb.op("step"):
                host.launch(time.sleep, 0.0015, stream=stream)
        stream.synchronize()
        if number % 3 == 2:
            written.put(number)
    written.put(-1)
    for thread in threads:
        thread.join()


def pipeline() -> None:
    """Fetch on two threads, parse on another one, and merge."""
    pools = concurrent.futures.ThreadPoolExecutor
    with pools(2) as fetchers, pools(1) as parsers:

        def parse(fetched: concurrent.futures.Future[None]) -> None:
            fetched.result()
            work("parse", 1.5)

        parsed = [parsers.submit(parse, fetchers.submit(work, "fetch", 4)) for _ in range(8)]
        for future in concurrent.futures.as_completed(parsed):
            future.result()
            work("merge", 0.5)


def phases() -> None:
    """Work on three threads until all have come, and then within a lock."""
    barrier, lock = threading.Barrier(3), threading.Lock()

    def phase(number: int) -> None:
        for _ in range(3):
            work(f"local {number}", (2, 3, 1)[number])
            barrier.wait()
            with lock:
                work("critical", 0.7)

    for thread in run_all(*(lambda number=number: phase(number) for number in range(3))):
        thread.join()


def count(name: str, steps: int) -> None:
    """Compute in an op three times, unless it is left out."""
    for _ in range(3):
        with epprof_nb.op(name):
            total = 0
            for number in range(0 if name in left_out else steps):
                total += number


def computing() -> None:
    """Compute on two threads under the GIL, while this one sleeps."""

    threads = run_all(lambda: count("long", 150_000), lambda: count("short", 100_000))
    work("sleep", 10)
    for thread in threads:
        thread.join()


PROGRAMS: dict[Callable[[], None], tuple[str, ...]] = {
    behind_queues: ("read", "write", "step"),
    pipeline: ("fetch", "parse", "merge"),
    phases: ("local 0", "local 1", "local 2", "critical"),
    computing: ("long", "short", "sleep"),
}


def timed(program: Callable[[], None], *without: str) -> float:
    """Return the time of a program without some ops, ns."""
    left_out.update(without)
    begin = time.perf_counter_ns()
    program()
    left_out.clear()
    return time.perf_counter_ns() - begin


def measured(
    program: Callable[[], None], names: tuple[str, ...], rounds: int
) -> tuple[list[epprof_nb.Profile], float, dict[str, float]]:
    """Return recordings, the time of a run, and that without each op, ns, all in turns."""
    profiles, times = list[epprof_nb.Profile](), {name: list[float]() for name in ("", *names)}
    for number in range(rounds + 1):
        with epprof_nb.profile() as prof, epprof_nb.op("all"):
            program()
        timed(program)  # the first run after a recording takes longer
        if number == 0:
            continue
        profiles.append(prof)
        for name, found in times.items():
            found.append(timed(program, name))
    profiles.sort(key=lambda prof: prof.wall_ns)
    # Other programs only make runs longer.
    quartiles = {name: statistics.quantiles(found, n=4)[0] for name, found in times.items()}
    return profiles, quartiles.pop(""), quartiles


def main() -> None:
    """Print one row per op, and fail if the bounds do not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    header("Savings of threads predicted by what_if, in % of the wall time (medians)")
    columns = ("true", "low", "value", "high", "width")
    print(f"{'program':<16}{'op':<12}{''.join(f'{c:>8}' for c in columns)}{'within':>10}")
    found = []
    for program, names in PROGRAMS.items():
        profiles, whole, without = measured(program, names, options.rounds)
        # A recording is one run. Some of them are as long as the runs that the truth is of.
        first = max(options.rounds // 4 - options.recordings // 2, 0)
        profiles = profiles[first:][: options.recordings]
        for name in names:
            true, margin = whole - without[name], MARGIN * whole
            rows = [prof.what_if({name: 0}).iloc[0] for prof in profiles]
            within = [
                row["saving_low_ns"] - margin <= true <= row["saving_high_ns"] + margin
                for row in rows
            ]
            found += within
            shares = [true, *(
                statistics.median(row[f"saving_{part}ns"] for row in rows)
                for part in ("low_", "", "high_")
            )]  # fmt: skip
            shares.append(
                statistics.median(row["saving_high_ns"] - row["saving_low_ns"] for row in rows)
            )
            print(f"{program.__name__:<16}{name:<12}", end="")
            print("".join(f"{100 * ns / whole:>8.1f}" for ns in shares), end="")
            print(f"{sum(within):>5} of {len(within)}")
    share = sum(found) / len(found)
    print(f"\ntruth within the bounds in {share:.0%} of {len(found)}")
    if share < MIN_WITHIN:
        raise SystemExit("The bounds do not hold.")


if __name__ == "__main__":
    main()
