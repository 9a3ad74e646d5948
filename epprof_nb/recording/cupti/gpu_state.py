"""GPU state before and after a profile: clocks, limits, temperature, power and other processes.

It shows whether kernels were slow because the GPU was throttled or shared. The state is read from
NVML, which does not start CUDA.
"""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epprof_nb.recording.cupti.find_library import find_driver

if TYPE_CHECKING:
    from collections.abc import Callable

_PROC = Path("/proc")
_NAME_BYTES = 256

CLOCK_EVENTS: dict[int, str] = {
    0x1: "gpu idle",
    0x2: "applications clocks setting",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake slowdown",
    0x100: "display clock setting",
}
"""NVML's bit mask of reasons for reduced clocks."""


class _Nvml:
    """The NVML bindings, initialised once per process; None if NVML is not available."""

    def __init__(self) -> None:
        self._library: Any = None
        self._process: int | None = None
        self.static_properties: dict[int, dict[str, Any]] = {}
        self.versions: dict[str, Any] = {}
        """Versions of the loaded driver, which no process can replace while NVML is open."""
        self._handles: tuple[Any, list[Any]] = (None, [])
        self.queried_us: dict[int, int] = {}
        """When the use of each GPU was last queried, in NVML's time: since the epoch."""

    def get(self) -> Any:  # noqa: ANN401 (the module is untyped)
        # A forked child must initialise NVML again.
        if self._process != os.getpid():
            self._process = os.getpid()
            self.static_properties = {}
            self.versions = {}
            self._handles = (None, [])
            self.queried_us = {}
            self._library = self._initialise()
        return self._library

    def gpus(self, nvml: Any) -> list[Any]:  # noqa: ANN401
        """Return the handles of the GPUs, which stay valid; None for one that is not accessible."""
        if self._handles[0] is not nvml:
            count = _query(nvml.nvmlDeviceGetCount) or 0
            found = [_query(nvml.nvmlDeviceGetHandleByIndex, index) for index in range(count)]
            if not found or None in found:  # it may be accessible later
                return found
            self._handles = nvml, found
        return self._handles[1]

    @staticmethod
    def _initialise() -> Any:  # noqa: ANN401
        try:
            import pynvml

            pynvml.nvmlInit()
        except Exception:  # noqa: BLE001 (profiles work without NVML)
            return None
        return pynvml


_NVML = _Nvml()


def snapshot() -> dict[str, Any]:
    """Return the current state of the GPUs; ``{}`` without NVML. Never raises.

    Returns
    -------
    dict
        ``driver_version`` (str), ``cuda_version`` (str, the newest that the driver supports) and
        ``gpus``, one dict per GPU in PCI bus order (CUDA's order may differ): ``name``,
        ``pci_bus_id``, ``compute_capability`` (str), ``pcie_generation``, ``pcie_lanes`` (the most
        that GPU and machine support), ``sm_clock_mhz``, ``sm_clock_max_mhz``,
        ``memory_clock_mhz``, ``clock_events`` (list of str, see `CLOCK_EVENTS`),
        ``temperature_c``, ``power_w``, ``power_limit_w``, ``memory_used_bytes``,
        ``memory_total_bytes``, ``other_processes`` (list of dicts with ``pid``, ``memory_bytes``,
        which may be None, and ``sm_percent``, the share of the time since the last call in which
        its kernels ran, if NVML has samples of that time), ``unseen_processes`` (int: processes
        without an entry in this container's ``/proc``, possibly including this one) and
        ``own_memory_bytes`` (of this process, if NVML lists it). Values that a GPU does not provide
        are omitted.

    Notes
    -----
    The first call in a process initialises NVML, which takes longer than the queries.
    """
    nvml = _NVML.get()
    if nvml is None:
        return {}
    try:
        if len(_NVML.versions) < 2:
            _NVML.versions = _without_none(
                driver_version=_query(nvml.nvmlSystemGetDriverVersion, then=_text),
                cuda_version=_query(nvml.nvmlSystemGetCudaDriverVersion, then=_cuda_version),
            )
        gpus = [_gpu(nvml, index, gpu) for index, gpu in enumerate(_NVML.gpus(nvml))]
        state = {**_NVML.versions, "gpus": gpus}
    except Exception:  # noqa: BLE001 (the GPU state is optional in a profile)
        return {}
    return state


def own_memory_bytes() -> int | None:
    """Return the memory of this process on all GPUs; None if NVML does not list it."""
    nvml = _NVML.get()
    found = None
    for gpu in _NVML.gpus(nvml) if nvml else ():
        running = _query(nvml.nvmlDeviceGetComputeRunningProcesses, gpu)
        own = _processes(running, {}).get("own_memory_bytes")
        found = found if own is None else (found or 0) + own
    return found


def used_bytes_if_alone() -> int | None:
    """Return the memory in use on all GPUs; None if other processes may use some of it.

    The list of processes is empty in some containers, whoever uses the GPUs. So this is only the
    memory of this process if no GPU was in use before it started CUDA.
    """
    nvml = _NVML.get()
    version = getattr(nvml, "nvmlMemory_v2", None)  # without what the driver reserves
    gpus = _NVML.gpus(nvml) if version else []
    total = 0
    for gpu in gpus:
        memory = _query(nvml.nvmlDeviceGetMemoryInfo, gpu, version)
        listed = _processes(_query(nvml.nvmlDeviceGetComputeRunningProcesses, gpu), {})
        if memory is None or listed.get("other_processes") or listed.get("unseen_processes", 0) > 1:
            return None
        total += int(memory.used)
    return total if gpus else None


def device_names() -> list[str]:
    """Return the names of the GPUs of this process by CUDA ordinal. Never raises.

    Once CUDA has started, the names come from the driver, which respects ``CUDA_VISIBLE_DEVICES``
    and ``CUDA_DEVICE_ORDER``. Before that they are in NVML's order.
    """
    names = _driver_device_names()
    if names is None:
        names = [gpu.get("name", "GPU") for gpu in snapshot().get("gpus", [])]
    return names


def _driver_device_names() -> list[str] | None:
    path = find_driver(load=False)
    if path is None:
        return None
    try:
        driver = ctypes.CDLL(path)
        count, text = ctypes.c_int(), ctypes.create_string_buffer(_NAME_BYTES)
        # Fails without side effects if CUDA is not initialised.
        if driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
            return None
        names = []
        for ordinal in range(count.value):
            if driver.cuDeviceGetName(text, _NAME_BYTES, ordinal) != 0:
                return None
            names.append(text.value.decode(errors="replace"))
    except (OSError, AttributeError):
        return None
    return names


def _gpu(nvml: Any, index: int, gpu: Any) -> dict[str, Any]:  # noqa: ANN401
    if gpu is None:
        return {}
    # Renamed in NVML 12.2. Older bindings have only the old name.
    events = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None) or (
        nvml.nvmlDeviceGetCurrentClocksThrottleReasons
    )
    memory = _query(nvml.nvmlDeviceGetMemoryInfo, gpu)
    if index not in _NVML.static_properties:
        _NVML.static_properties[index] = _static_properties(nvml, gpu)
    return _NVML.static_properties[index] | _without_none(
        sm_clock_mhz=_query(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_SM),
        memory_clock_mhz=_query(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_MEM),
        clock_events=_query(events, gpu, then=clock_events),
        temperature_c=_query(nvml.nvmlDeviceGetTemperature, gpu, nvml.NVML_TEMPERATURE_GPU),
        power_w=_query(nvml.nvmlDeviceGetPowerUsage, gpu, then=_watts),
        power_limit_w=_query(nvml.nvmlDeviceGetEnforcedPowerLimit, gpu, then=_watts),
        memory_used_bytes=None if memory is None else int(memory.used),
        memory_total_bytes=None if memory is None else int(memory.total),
        **_processes(
            _query(nvml.nvmlDeviceGetComputeRunningProcesses, gpu), _used_percent(nvml, gpu, index)
        ),
    )


def _used_percent(nvml: Any, gpu: Any, index: int) -> dict[int, float]:  # noqa: ANN401
    """Return in how much of the time since the last call each process ran kernels, by its pid."""
    now_us = time.time_ns() // 1000
    since_us = _NVML.queried_us.get(index)
    _NVML.queried_us[index] = now_us
    if since_us is None:
        return {}
    query = getattr(nvml, "nvmlDeviceGetProcessUtilization", None)
    # Without new samples, NVML reports that it found none.
    samples = _query(query, gpu, since_us) if query else None
    used: dict[int, list[float]] = {}
    for sample in samples or ():
        if since_us <= sample.timeStamp <= now_us:
            used.setdefault(sample.pid, []).append(float(sample.smUtil))
    return {pid: sum(values) / len(values) for pid, values in used.items()}


def _static_properties(nvml: Any, gpu: Any) -> dict[str, Any]:  # noqa: ANN401
    """Query properties that never change; the clock limit alone takes milliseconds to query."""
    return _without_none(
        name=_query(nvml.nvmlDeviceGetName, gpu, then=_text),
        pci_bus_id=_query(nvml.nvmlDeviceGetPciInfo, gpu, then=lambda pci: _text(pci.busId)),
        compute_capability=_query(
            nvml.nvmlDeviceGetCudaComputeCapability, gpu, then=lambda v: f"{v[0]}.{v[1]}"
        ),
        sm_clock_max_mhz=_query(nvml.nvmlDeviceGetMaxClockInfo, gpu, nvml.NVML_CLOCK_SM),
        pcie_generation=_query(nvml.nvmlDeviceGetMaxPcieLinkGeneration, gpu),
        pcie_lanes=_query(nvml.nvmlDeviceGetMaxPcieLinkWidth, gpu),
    )


def clock_events(bits: int) -> list[str]:
    """Return the names of the bits of a clock event mask; unknown bits as a number."""
    names = [name for bit, name in CLOCK_EVENTS.items() if bits & bit]
    unknown = bits & ~sum(CLOCK_EVENTS)
    return [*names, f"0x{unknown:x}"] if unknown else names


def _processes(running: list[Any] | None, used_percent: dict[int, float]) -> dict[str, Any]:
    if running is None:
        return {}
    others: list[dict[str, Any]] = []
    unseen, own = 0, None
    for process in running:
        if process.pid == os.getpid():
            own = process.usedGpuMemory
            continue
        # In a container, NVML may report pids of the host, including the pid of this process.
        if (_PROC / str(process.pid)).exists():
            other = {"pid": process.pid, "memory_bytes": process.usedGpuMemory}
            if process.pid in used_percent:
                other["sm_percent"] = used_percent[process.pid]
            others.append(other)
        else:
            unseen += 1
    return {
        "other_processes": others,
        "unseen_processes": unseen,
        **_without_none(own_memory_bytes=own),
    }


def _query(
    function: Callable[..., Any], *arguments: object, then: Callable[[Any], Any] | None = None
) -> Any:  # noqa: ANN401
    """Return the result of an NVML query, or None if the GPU does not support it."""
    try:
        result = function(*arguments)
        return result if then is None else then(result)
    except Exception:  # noqa: BLE001 (NVMLError, or a binding that differs)
        return None


def _without_none(**values: object) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _watts(milliwatts: int) -> float:
    return milliwatts / 1000


def _cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
