"""Length and cost of the delays of experiments on a CUDA device.

::

    python -m tests.benchmarks.cuda_delays [--rounds 20]

Delays measure their own length; CUDA's events around them are the other measure, less those around
a delay of length zero. Launches are timed while streams are followed, and while they are not, in
turns, each time after a recording. Fails if the two measures of a length are more than 5 % apart,
or if launches take more than 1.05 times as long while streams are followed. Needs an NVIDIA GPU and
CuPy.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING, Any

import epprof_nb
from epprof_nb import _native
from epprof_nb.ep.cuda import open_driver
from tests.benchmarks.shared.harness import header, median_bounds, paired, show

if TYPE_CHECKING:
    from collections.abc import Callable

LENGTHS_US = (10, 50, 500)
LAUNCHES = 500  # fewer than fit in the queue of a stream
MAX_APART, MAX_RATIO = 0.05, 1.05
BUSY = r"""
extern "C" __global__ void busy(long long cycles) {
  long long begin = clock64();
  while (clock64() - begin < cycles);
}
"""


class Device:
    """A stream of CuPy, and the delays on it."""

    def __init__(self) -> None:
        import cupy

        self.cupy: Any = cupy
        self.kernel = cupy.RawKernel(BUSY, "busy")
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.launch(0)

    def launch(self, cycles: int) -> None:
        """Launch a kernel of a length."""
        with self.stream:
            self.kernel((1,), (1,), (cycles,))

    def record(self, *, follows: bool) -> None:
        """Record a launch, and follow its stream from then on, or not."""
        _native.follow_streams(follows)
        with epprof_nb.profile():
            self.launch(0)
            self.stream.synchronize()

    def delay_us(self, stream: int, length_us: int) -> float:
        """Return the time between two events around a delay; a kernel is before both."""
        first, last = (self.cupy.cuda.Event() for _ in range(2))
        self.launch(200_000)
        first.record(self.stream)
        _native.launch_delay(stream, length_us, length_us * 1_000)
        last.record(self.stream)
        self.stream.synchronize()
        return float(self.cupy.cuda.get_elapsed_time(first, last) * 1e3)

    def timed(self, launch: Callable[[], object]) -> float:
        """Return how long the host takes for some launches, s."""
        self.stream.synchronize()
        begin = time.perf_counter()
        for _ in range(LAUNCHES):
            launch()
        return time.perf_counter() - begin


def lengths(device: Device, stream: int, rounds: int) -> bool:
    """Print both measures of each length; return whether they are alike."""
    by_events = {
        us: statistics.median(device.delay_us(stream, us) for _ in range(rounds))
        for us in (0, *LENGTHS_US)
    }
    taken: dict[int, list[float]] = {}
    for tag, ns in _native.take_delays():
        taken.setdefault(tag, []).append(ns / 1e3)
    apart = 0.0
    print("us on the device: ordered, by its own measure, by events less those of length zero")
    for us in LENGTHS_US:
        own, events = statistics.median(taken[us]), by_events[us] - by_events[0]
        apart = max(apart, abs(own - events) / us)
        print(f"  {us:>5}{own:>9.2f}{events:>9.2f}")
    return apart <= MAX_APART


def main() -> None:
    """Print lengths and costs, and fail if a delay is not as long as it says, or costs much."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    header("Delays of experiments on a CUDA device")
    device = Device()
    open_driver()
    device.record(follows=True)
    ((stream, *_),) = _native.launched_streams() or ()
    _native.begin_delays()
    are_alike = lengths(device, stream, options.rounds)

    def kernels(*, follows: bool) -> float:
        device.record(follows=follows)
        return device.timed(lambda: device.launch(0))

    def delays() -> float:
        device.record(follows=True)
        ((stream, *_),) = _native.launched_streams() or ()
        _native.begin_delays()
        took = device.timed(lambda: _native.launch_delay(stream, 0, 0))
        device.stream.synchronize()
        _native.take_delays()
        return took

    results = paired(
        {
            "kernels": lambda: kernels(follows=False),
            "kernels, followed": lambda: kernels(follows=True),
            "delays of length zero": delays,
        },
        options.rounds,
    )
    _native.end_delays()
    _native.follow_streams(False)
    show(results, ("kernels",), "us of the host a launch", 1e6 / LAUNCHES)
    each = [a / b for a, b in zip(results["kernels, followed"], results["kernels"], strict=True)]
    low, high = median_bounds(each)
    print(f"launches while streams are followed: {statistics.median(each):.3f}x "
          f"({low:.3f} to {high:.3f})")  # fmt: skip
    if not are_alike:
        raise SystemExit(f"The measures of a length are more than {MAX_APART:.0%} apart.")
    if statistics.median(each) > MAX_RATIO:
        raise SystemExit(f"Following streams makes launches more than {MAX_RATIO}x as long.")


if __name__ == "__main__":
    main()
