"""Cost of recording which event each wait is for, on a step that consists of event waits.

::

    python -m tests.benchmarks.event_records [--rounds 40]

Two streams take turns: each kernel is followed by the record of an event, for which the other
stream waits. The step is profiled with and without CUPTI's records of events, in turns. Fails if
they make it more than 1.01 times as long. Needs an NVIDIA GPU and CuPy.
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

import epprof_nb
from epprof_nb import _native
from epprof_nb.recording.cupti import layouts
from tests.benchmarks.shared.harness import header, median_bounds, paired, show

if TYPE_CHECKING:
    from collections.abc import Iterator

WAITS = 2_000
MAX_RATIO = 1.01
_EVENTS = layouts.ENUMERATORS["CUPTI_ACTIVITY_KIND_CUDA_EVENT"]


@contextmanager
def without_records_of_events() -> Iterator[None]:
    """Start CUPTI without its records of events."""
    start = _native.cupti_start

    def started(*, kinds: bytes, **more: Any) -> dict[str, int]:
        numbers = np.frombuffer(kinds, np.uint32)
        return start(kinds=numbers[numbers != _EVENTS].tobytes(), **more)

    _native.cupti_start = started
    try:
        yield
    finally:
        _native.cupti_start = start


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

    def profiled_without() -> float:
        with without_records_of_events(), epprof_nb.profile():
            return step()

    known: list[float] = []
    step()
    profiled()
    results = paired(
        {"unprofiled": step, "without events": profiled_without, "with events": profiled},
        options.rounds,
    )
    show(results, ("unprofiled", "without events"), "us a wait", 1e6 / WAITS)
    pairs = zip(results["with events"], results["without events"], strict=True)
    each = [a / b for a, b in pairs]
    low, high = median_bounds(each)
    print(f"ratio {statistics.median(each):.4f} ({low:.4f} to {high:.4f}); known: {min(known):.1%}")
    if min(known) < 1:
        raise SystemExit("Some waits have no event.")
    if statistics.median(each) > MAX_RATIO:
        raise SystemExit(f"The records of events cost more than {MAX_RATIO}x.")


if __name__ == "__main__":
    main()
