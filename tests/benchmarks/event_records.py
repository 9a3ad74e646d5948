"""Cost of recording which event each wait is for, on a step that consists of event waits.

::

    python -m tests.benchmarks.event_records [--rounds 40]

Two streams take turns: each kernel is followed by the record of an event, for which the other
stream waits. The step is profiled, and recorded by CUPTI alone with its own records of events and
synchronizations, in turns. Needs an NVIDIA GPU and CuPy.
"""

from __future__ import annotations

import argparse
import time

import epprof_nb
from tests.benchmarks.shared.harness import header, paired, show
from tests.benchmarks.shared.kernel_records import kernel_records

WAITS = 2_000


def main() -> None:
    """Print the times of a step, and fail if the records cost too much."""
    import cupy

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    header(f"A step of {WAITS:,} kernels and event waits")
    kernel = cupy.RawKernel('extern "C" __global__ void nothing() {}', "nothing")
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    events = [cupy.cuda.Event(disable_timing=True) for _ in range(WAITS)]

    def step() -> float:
        cupy.cuda.runtime.deviceSynchronize()
        begin = time.perf_counter()
        for number, event in enumerate(events):
            first, second = streams[number % 2], streams[1 - number % 2]
            with first:
                kernel((1,), (1,), ())
            event.record(first)
            second.wait_event(event)
        cupy.cuda.runtime.deviceSynchronize()
        return time.perf_counter() - begin

    def profiled() -> float:
        with epprof_nb.profile() as prof:
            seconds = step()
        known.append(prof.activities["event_source"].notna().sum() / WAITS)
        return seconds

    def recorded_by_cupti() -> float:
        with kernel_records("SYNCHRONIZATION", "CUDA_EVENT"):
            return step()

    known: list[float] = []
    step()
    profiled()
    results = paired(
        {"unprofiled": step, "CUPTI's records": recorded_by_cupti, "epprof_nb": profiled},
        options.rounds,
    )
    show(results, ("unprofiled", "CUPTI's records"), "us a wait", 1e6 / WAITS)
    print(f"known events: {min(known):.1%}")
    if min(known) < 1:
        raise SystemExit("Some waits have no event.")


if __name__ == "__main__":
    main()
