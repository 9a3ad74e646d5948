"""`Profile.what_if` of threads that work for each other, against programs without one of their ops.

::

    python -m tests.benchmarks.thread_savings [--recordings 5] [--rounds 21]

A loader and a writer behind queues, a pipeline of pools, and threads with a barrier and a lock. The
truth is that of runs in which the op does nothing, in turns with whole ones (lower quartiles). A
recording is one run, so of four times as many, those of about the lower quartile are taken. Fails
if the truth is within the bounds, give or take 8 % of the wall time, in less than four of five
recordings. The width is that between the bounds.
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


PROGRAMS: dict[Callable[[], None], tuple[str, ...]] = {
    behind_queues: ("read", "write", "step"),
    pipeline: ("fetch", "parse", "merge"),
    phases: ("local 0", "local 1", "local 2", "critical"),
}


def timed(program: Callable[[], None], *without: str) -> float:
    """Return the time of a program without some ops, ns."""
    left_out.update(without)
    begin = time.perf_counter_ns()
    program()
    left_out.clear()
    return time.perf_counter_ns() - begin


def usual_recordings(program: Callable[[], None], count: int) -> list[epprof_nb.Profile]:
    """Return recordings of which the wall times are closest to their lower quartile."""
    profiles = []
    for _ in range(4 * count):
        with epprof_nb.profile() as prof, epprof_nb.op("all"):
            program()
        profiles.append(prof)
    profiles.sort(key=lambda prof: prof.wall_ns)
    return profiles[(count + 1) // 2 :][:count]


def main() -> None:
    """Print one row per op, and fail if the bounds do not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    header("Savings of threads predicted by what_if, in % of the wall time (medians)")
    print(
        f"{'program':<16}{'op':<12}{'true':>8}{'low':>8}{'value':>8}{'high':>8}{'width':>8}{'within':>10}"
    )
    found = []
    for program, names in PROGRAMS.items():
        timed(program)
        profiles = usual_recordings(program, options.recordings)
        for name in names:
            pairs = [(timed(program), timed(program, name)) for _ in range(options.rounds)]
            # Other programs only make runs longer.
            whole, without = (
                statistics.quantiles(times, n=4)[0] for times in zip(*pairs, strict=True)
            )
            true, margin = whole - without, MARGIN * whole
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
