"""A common interface of the host device and CUDA for the contract tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from epprof_nb import host

Kernel = Callable[..., None]
"""``kernel(array, multiply, add, busy_ms=0, stream=None)``: keeps the device busy for `busy_ms`,
then replaces each element x of a float64 device array by ``x * multiply + add``."""


class Device(Protocol):
    name: str
    clock_slack_ns: int
    """Tolerance by which recorded device times may contradict the order of execution."""

    def kernels(self, names: Sequence[str]) -> dict[str, Kernel]: ...
    def stream(self) -> Any: ...
    def event(self) -> Any: ...
    def record(self, event: Any, stream: Any) -> None: ...
    def elapsed_ns(self, start: Any, end: Any) -> float: ...
    def done(self, stream: Any) -> bool: ...
    def empty(self, count: int) -> Any: ...
    def upload(self, target: Any, source: np.ndarray, stream: Any) -> None: ...
    def download(self, target: np.ndarray, source: Any, stream: Any) -> None: ...
    def copy(self, target: Any, source: Any, stream: Any) -> None: ...
    def memset(self, target: Any, value: int, stream: Any) -> None: ...
    def synchronize(self) -> None: ...


class HostDevice:
    name = "host"
    clock_slack_ns = 0

    def __init__(self) -> None:
        self._work = np.ones(100_000)

    def _busy(self, milliseconds: float) -> None:
        end = time.monotonic_ns() + milliseconds * 1e6
        scratch = np.empty_like(self._work)
        while time.monotonic_ns() < end:
            np.sqrt(self._work, out=scratch)

    def kernels(self, names: Sequence[str]) -> dict[str, Kernel]:
        def body(view: np.ndarray, multiply: float, add: float, busy_ms: float) -> None:
            self._busy(busy_ms)
            view *= multiply
            view += add

        def kernel(name: str) -> Kernel:
            def launch(array, multiply, add, busy_ms=0.0, stream=None):
                host.launch(body, array, multiply, add, busy_ms, stream=stream, name=name)

            return launch

        return {name: kernel(name) for name in names}

    def stream(self) -> host.Stream:
        return host.Stream()

    def event(self) -> host.Event:
        return host.Event()

    def record(self, event: host.Event, stream: host.Stream) -> None:
        event.record(stream)

    def elapsed_ns(self, start: host.Event, end: host.Event) -> float:
        return start.elapsed_ns(end)

    def done(self, stream: host.Stream) -> bool:
        return stream.query()

    def empty(self, count: int) -> host.Array:
        return host.empty(count, np.float64)

    def upload(self, target, source, stream) -> None:
        host.memcpy(target, source, stream)

    def download(self, target, source, stream) -> None:
        host.memcpy(target, source, stream)

    def copy(self, target, source, stream) -> None:
        host.memcpy(target, source, stream)

    def memset(self, target, value, stream) -> None:
        host.memset(target, value, stream)

    def synchronize(self) -> None:
        host.synchronize()


_CUDA_KERNEL = """
extern "C" __global__ void {name}(double* x, int n, double multiply, double add, long long busy) {{
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
    do {{ asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); }}
    while ((long long)(now - start) < busy);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * multiply + add;
}}
"""


class CudaDevice:
    name = "cuda"
    clock_slack_ns = 2_000

    def __init__(self) -> None:
        import cupy

        self._cupy = cupy

    def kernels(self, names: Sequence[str]) -> dict[str, Kernel]:
        cupy = self._cupy
        module = cupy.RawModule(code="".join(_CUDA_KERNEL.format(name=name) for name in names))

        def kernel(name: str) -> Kernel:
            function = module.get_function(name)

            def launch(array, multiply, add, busy_ms=0.0, stream=None):
                arguments = (
                    array, np.int32(array.size), np.float64(multiply), np.float64(add),
                    np.int64(busy_ms * 1e6),
                )  # fmt: skip
                blocks = (array.size + 127) // 128
                with stream or cupy.cuda.Stream.null:
                    function((blocks,), (128,), arguments)

            return launch

        made = {name: kernel(name) for name in names}
        # CUDA loads a kernel at its first launch, and may stop all other work for that.
        for launch in made.values():
            launch(self.empty(1), 1.0, 0.0)
        self.synchronize()
        return made

    def stream(self) -> Any:
        return self._cupy.cuda.Stream(non_blocking=True)

    def event(self) -> Any:
        return self._cupy.cuda.Event()

    def record(self, event, stream) -> None:
        event.record(stream)

    def elapsed_ns(self, start, end) -> float:
        return self._cupy.cuda.get_elapsed_time(start, end) * 1e6

    def done(self, stream) -> bool:
        return bool(stream.done)

    def empty(self, count: int) -> Any:
        return self._cupy.empty(count, np.float64)

    def upload(self, target, source, stream) -> None:
        target.data.copy_from_host_async(source.ctypes.data, source.nbytes, stream)

    def download(self, target, source, stream) -> None:
        source.data.copy_to_host_async(target.ctypes.data, target.nbytes, stream)

    def copy(self, target, source, stream) -> None:
        target.data.copy_from_device_async(source.data, source.nbytes, stream)

    def memset(self, target, value, stream) -> None:
        target.data.memset_async(value, target.nbytes, stream)

    def synchronize(self) -> None:
        self._cupy.cuda.Device().synchronize()


def why_no_cuda() -> str | None:
    """Return why the CUDA device cannot be tested here; None if it can."""
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no NVIDIA GPU: {error}"
    return None if count else "no NVIDIA GPU"
