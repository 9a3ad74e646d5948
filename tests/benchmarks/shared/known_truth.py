"""Steps of which an op can be shortened or left out, on the host device or a CUDA device.

On the host device, kernels and code sleep, so that the speed of the machine hardly matters.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

import epprof_nb
from epprof_nb import host

if TYPE_CHECKING:
    from collections.abc import Callable

    Step = Callable[["HostDevice | CudaDevice", "Scale"], None]

_SPIN = r"""
extern "C" __global__ void spin(long long ns) {
  long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - begin < ns);
}
"""


class Scale:
    """Durations of a trial: those of one op are multiplied by a factor."""

    def __init__(self, seed: int, changed: str = "", factor: float = 1.0) -> None:
        self._seed, self._changed, self._factor = seed, changed, factor

    def begin(self) -> None:
        """Begin a step: it draws the same durations as each other one."""
        self._random = np.random.default_rng(self._seed)

    def ms(self, mean: float) -> float:
        """Return a duration around a mean."""
        return float(mean * self._random.uniform(0.7, 1.3))

    def of(self, name: str) -> float:
        """Return the factor of what is in an op."""
        return self._factor if name == self._changed else 1.0


def pause(ms: float) -> None:
    """Spend time on the host."""
    if ms > 0:
        time.sleep(ms / 1e3)


class HostDevice:
    """The host device."""

    def __init__(self) -> None:
        self.streams = [host.Stream() for _ in range(2)]
        self._big = [np.ones(3_000_000, np.float32) for _ in range(2)]
        self._small = host.to_device(np.zeros(4, np.float32))

    def kernel(self, ms: float, stream: int = 0) -> None:
        """Launch a kernel that needs nothing of the device but time."""
        if ms > 0:
            host.launch(lambda: time.sleep(ms / 1e3), stream=self.streams[stream], name="sleep")

    def contend(self, count: int, stream: int = 0) -> None:
        """Launch kernels that share the memory's bandwidth with those of another stream."""
        values = self._big[stream]
        for _ in range(count):
            host.launch(
                lambda: np.add(values, 1, out=values), stream=self.streams[stream], name="add"
            )

    def follow(self, stream: int, other: int) -> None:
        """Make a stream wait for the work that another one has now."""
        event = host.Event()
        event.record(self.streams[other])
        self.streams[stream].wait_event(event)

    def read(self) -> None:
        """Copy a value of the first stream to the host."""
        self.streams[0].synchronize()
        host.to_host(self._small)

    def wait(self) -> None:
        """Wait for all work."""
        host.synchronize()


class CudaDevice:
    """The CUDA device that CuPy uses."""

    def __init__(self) -> None:
        import cupy

        self._cupy: Any = cupy
        self._spin = cupy.RawKernel(_SPIN, "spin")
        self.streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
        self._big = [cupy.ones(1 << 28, cupy.float32) for _ in range(2)]
        self._small = cupy.zeros(4, cupy.float32)

    def kernel(self, ms: float, stream: int = 0) -> None:
        """Launch a kernel that needs nothing of the device but time."""
        if ms > 0:
            with self.streams[stream]:
                self._spin((1,), (1,), (int(ms * 1e6),))

    def contend(self, count: int, stream: int = 0) -> None:
        """Launch kernels that share the memory's bandwidth with those of another stream."""
        with self.streams[stream]:
            for _ in range(count):
                self._big[stream] += 1

    def follow(self, stream: int, other: int) -> None:
        """Make a stream wait for the work that another one has now."""
        event = self._cupy.cuda.Event(disable_timing=True)
        event.record(self.streams[other])
        self.streams[stream].wait_event(event)

    def read(self) -> None:
        """Copy a value of the first stream to the host."""
        with self.streams[0]:
            self._small.get()

    def wait(self) -> None:
        """Wait for all work."""
        self._cupy.cuda.runtime.deviceSynchronize()


def _hidden_stream(d: HostDevice | CudaDevice, scale: Scale, main: str, side: str) -> None:
    factor = scale.of(main)
    with epprof_nb.op(main):
        d.kernel(factor * scale.ms(12), 0)
    factor = scale.of(side)
    with epprof_nb.op(side):
        d.kernel(factor * scale.ms(5), 1)
    d.wait()


def _contending(d: HostDevice | CudaDevice, scale: Scale) -> None:
    # Even numbers, so that half of the kernels is half of the time.
    first, second = (2 * round(scale.ms(6)) for _ in range(2))
    with epprof_nb.op("first"):
        d.contend(first, 0)
    factor = scale.of("changed")
    with epprof_nb.op("changed"):
        d.contend(round(factor * second), 1)
    d.wait()


def _balanced_chains(d: HostDevice | CudaDevice, scale: Scale) -> None:
    length = scale.ms(12)
    factor = scale.of("changed")
    with epprof_nb.op("changed"):
        d.kernel(factor * length, 0)
    with epprof_nb.op("second"):
        d.kernel(0.98 * length, 1)
    d.wait()


def _events(d: HostDevice | CudaDevice, scale: Scale) -> None:
    for _ in range(3):
        factor = scale.of("changed")
        with epprof_nb.op("changed"):
            d.kernel(factor * scale.ms(3), 0)
        d.follow(1, 0)
        d.kernel(scale.ms(3), 0)
        with epprof_nb.op("after"):
            d.kernel(scale.ms(4), 1)
    d.wait()


def _host_bound(
    d: HostDevice | CudaDevice, scale: Scale, on_host: float, on_device: float, count: int
) -> None:
    for _ in range(count):
        factor = scale.of("changed")
        with epprof_nb.op("changed"):
            pause(factor * scale.ms(on_host))
        with epprof_nb.op("launch"):
            d.kernel(scale.ms(on_device))
    d.wait()


def _synchronizing_line(d: HostDevice | CudaDevice, scale: Scale) -> None:
    for _ in range(5):
        d.kernel(scale.ms(3))
        factor = scale.of("changed")
        with epprof_nb.op("changed"):
            if factor:
                d.read()
        with epprof_nb.op("prepare"):
            pause(scale.ms(2))
    d.wait()


def _slow_loader(d: HostDevice | CudaDevice, scale: Scale) -> None:
    for _ in range(4):
        factor = scale.of("changed")
        with epprof_nb.op("changed"):
            pause(factor * scale.ms(4))
        d.kernel(scale.ms(2))
        d.read()


def _cpu_fallback(d: HostDevice | CudaDevice, scale: Scale) -> None:
    for _ in range(4):
        d.kernel(scale.ms(2))
        factor = scale.of("changed")
        with epprof_nb.op("changed"):
            if factor:
                d.read()
            pause(factor * scale.ms(3))
        d.kernel(scale.ms(2))
    d.wait()


STEPS: dict[str, tuple[Step, tuple[float, ...]]] = {
    "hidden stream": (lambda d, s: _hidden_stream(d, s, "main", "changed"), (0, 0.5)),
    "critical stream": (lambda d, s: _hidden_stream(d, s, "changed", "side"), (0, 0.5)),
    "two contending streams": (_contending, (0, 0.5)),
    "balanced chains": (_balanced_chains, (0, 0.5)),
    "stream that waits for events": (_events, (0, 0.5)),
    "host-bound launches": (lambda d, s: _host_bound(d, s, 0.8, 0.1, 20), (0, 0.5)),
    "host-bound, then device-bound": (lambda d, s: _host_bound(d, s, 2, 1.5, 8), (0, 0.5)),
    "synchronizing line": (_synchronizing_line, (0, 0)),
    "slow loader": (_slow_loader, (0, 0.5)),
    "CPU fallback": (_cpu_fallback, (0, 0.5)),
}
"""A step of each name, whose op ``changed`` can take other times, and the factors to try."""


def timed(step: Step, device: HostDevice | CudaDevice, scale: Scale) -> float:
    """Run a step, and return how long it took, s."""
    begin = time.perf_counter()
    scale.begin()
    step(device, scale)
    return time.perf_counter() - begin
