"""The GPUs' state around a profile: clocks, limits, heat, power, and who else uses them.

A kernel that was slow because the GPU was throttled or shared looks like any other slow kernel;
this is what tells them apart. NVML is asked, which starts no CUDA.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epprof_nb.recorders.cupti.library import find_driver

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
"""NVML's bits for why clocks are lower than they could be."""


class _Nvml:
    """NVML, initialised once a process; None where there is none."""

    def __init__(self) -> None:
        self._library: Any = None
        self._process: int | None = None
        self.unchanging: dict[int, dict[str, Any]] = {}

    def get(self) -> Any:  # noqa: ANN401 (the module is untyped)
        # A forked child has to initialise anew.
        if self._process != os.getpid():
            self._process = os.getpid()
            self.unchanging = {}
            self._library = self._initialise()
        return self._library

    @staticmethod
    def _initialise() -> Any:  # noqa: ANN401
        try:
            import pynvml

            pynvml.nvmlInit()
        except Exception:  # noqa: BLE001 (whatever keeps NVML away, the profile goes on)
            return None
        return pynvml


_NVML = _Nvml()


def snapshot() -> dict[str, Any]:
    """Return the state of the GPUs now; ``{}`` where NVML is absent. Raises nothing.

    Returns
    -------
    dict
        ``driver_version`` (str), ``cuda_version`` (str, the newest the driver supports) and
        ``gpus``, one dict a GPU in NVML's order (the bus's, which CUDA's may differ from):
        ``name``, ``pci_bus_id``, ``compute_capability`` (str), ``sm_clock_mhz``,
        ``sm_clock_max_mhz``, ``memory_clock_mhz``, ``clock_events`` (list of str, see
        `CLOCK_EVENTS`), ``temperature_c``, ``power_w``, ``power_limit_w``,
        ``memory_used_bytes``, ``memory_total_bytes``, ``other_processes`` (list of dicts with
        ``pid`` and ``memory_bytes``, which is None where NVML does not tell) and
        ``unseen_processes`` (int: processes that have no entry in this container's ``/proc``;
        this one may be among them). What a GPU does not tell is left out.

    Notes
    -----
    The first call of a process initialises NVML, which takes longer than the questions.
    """
    nvml = _NVML.get()
    if nvml is None:
        return {}
    try:
        state = _known(
            driver_version=_ask(nvml.nvmlSystemGetDriverVersion, then=_text),
            cuda_version=_ask(nvml.nvmlSystemGetCudaDriverVersion, then=_cuda_version),
        )
        count = _ask(nvml.nvmlDeviceGetCount) or 0
        state["gpus"] = [_gpu(nvml, index) for index in range(count)]
    except Exception:  # noqa: BLE001 (a profile must never fail for its side notes)
        return {}
    return state


def device_names() -> list[str]:
    """Return the names of the GPUs by CUDA's ordinal, as this process sees them. Raises nothing.

    The driver is asked if CUDA has started in this process, since only it knows the order that
    ``CUDA_VISIBLE_DEVICES`` and ``CUDA_DEVICE_ORDER`` make; before that it is NVML's order.
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
        # Fails, and starts nothing, while CUDA has not been initialised.
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


def _gpu(nvml: Any, index: int) -> dict[str, Any]:  # noqa: ANN401
    gpu = _ask(nvml.nvmlDeviceGetHandleByIndex, index)
    if gpu is None:
        return {}
    # Renamed in NVML 12.2; older bindings know the old name only.
    events = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None) or (
        nvml.nvmlDeviceGetCurrentClocksThrottleReasons
    )
    memory = _ask(nvml.nvmlDeviceGetMemoryInfo, gpu)
    if index not in _NVML.unchanging:
        _NVML.unchanging[index] = _unchanging(nvml, gpu)
    return _NVML.unchanging[index] | _known(
        sm_clock_mhz=_ask(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_SM),
        memory_clock_mhz=_ask(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_MEM),
        clock_events=_ask(events, gpu, then=clock_events),
        temperature_c=_ask(nvml.nvmlDeviceGetTemperature, gpu, nvml.NVML_TEMPERATURE_GPU),
        power_w=_ask(nvml.nvmlDeviceGetPowerUsage, gpu, then=_watts),
        memory_used_bytes=None if memory is None else int(memory.used),
        memory_total_bytes=None if memory is None else int(memory.total),
        **_processes(_ask(nvml.nvmlDeviceGetComputeRunningProcesses, gpu)),
    )


def _unchanging(nvml: Any, gpu: Any) -> dict[str, Any]:  # noqa: ANN401
    """What stays the same: asked once, because the clock's limit alone takes milliseconds."""
    return _known(
        name=_ask(nvml.nvmlDeviceGetName, gpu, then=_text),
        pci_bus_id=_ask(nvml.nvmlDeviceGetPciInfo, gpu, then=lambda pci: _text(pci.busId)),
        compute_capability=_ask(
            nvml.nvmlDeviceGetCudaComputeCapability, gpu, then=lambda v: f"{v[0]}.{v[1]}"
        ),
        sm_clock_max_mhz=_ask(nvml.nvmlDeviceGetMaxClockInfo, gpu, nvml.NVML_CLOCK_SM),
        power_limit_w=_ask(nvml.nvmlDeviceGetEnforcedPowerLimit, gpu, then=_watts),
    )


def clock_events(bits: int) -> list[str]:
    """Return the names of NVML's clock event bits; unknown bits by number."""
    names = [name for bit, name in CLOCK_EVENTS.items() if bits & bit]
    unknown = bits & ~sum(CLOCK_EVENTS)
    return [*names, f"0x{unknown:x}"] if unknown else names


def _processes(running: list[Any] | None) -> dict[str, Any]:
    if running is None:
        return {}
    others: list[dict[str, int | None]] = []
    unseen = 0
    for process in running:
        if process.pid == os.getpid():
            continue
        # In a container NVML may give the host's pids, this process's own among them.
        if (_PROC / str(process.pid)).exists():
            others.append({"pid": process.pid, "memory_bytes": process.usedGpuMemory})
        else:
            unseen += 1
    return {"other_processes": others, "unseen_processes": unseen}


def _ask(
    function: Callable[..., Any], *arguments: object, then: Callable[[Any], Any] | None = None
) -> Any:  # noqa: ANN401
    """Return what NVML answers, None where it does not: each GPU answers other questions."""
    try:
        answer = function(*arguments)
        return answer if then is None else then(answer)
    except Exception:  # noqa: BLE001 (NVMLError, or a binding that differs)
        return None


def _known(**answers: object) -> dict[str, Any]:
    return {key: value for key, value in answers.items() if value is not None}


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _watts(milliwatts: int) -> float:
    return milliwatts / 1000


def _cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
