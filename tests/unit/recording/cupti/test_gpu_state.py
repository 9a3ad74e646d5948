"""The GPU state, with a fake of the NVML bindings."""

from __future__ import annotations

import json
import os
import sys
from types import SimpleNamespace

import pytest

from epprof_nb.recording.cupti import gpu_state


class NVMLError(Exception):
    pass


def fake_nvml(**changes):
    """Fake NVML with one GPU; `changes` replace functions, and None makes a function fail."""

    def process(pid, memory):
        return SimpleNamespace(pid=pid, usedGpuMemory=memory)

    calls = []
    functions = {
        "nvmlInit": lambda: calls.append("init"),
        "nvmlSystemGetDriverVersion": lambda: "580.159.04",
        "nvmlSystemGetCudaDriverVersion": lambda: 13010,
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlDeviceGetHandleByIndex": lambda index: f"gpu {index}",
        "nvmlDeviceGetName": lambda gpu: b"NVIDIA H200",
        "nvmlDeviceGetPciInfo": lambda gpu: SimpleNamespace(busId="00000000:1B:00.0"),
        "nvmlDeviceGetCudaComputeCapability": lambda gpu: (9, 0),
        "nvmlDeviceGetClockInfo": lambda gpu, which: {1: 1755, 2: 3201}[which],
        "nvmlDeviceGetMaxClockInfo": lambda gpu, which: 1980,
        "nvmlDeviceGetMaxPcieLinkGeneration": lambda gpu: 5,
        "nvmlDeviceGetMaxPcieLinkWidth": lambda gpu: 16,
        "nvmlDeviceGetCurrentClocksEventReasons": lambda gpu: 0x4 | 0x20,
        "nvmlDeviceGetTemperature": lambda gpu, which: 61,
        "nvmlDeviceGetPowerUsage": lambda gpu: 612_345,
        "nvmlDeviceGetEnforcedPowerLimit": lambda gpu: 700_000,
        "nvmlDeviceGetMemoryInfo": lambda gpu: SimpleNamespace(used=1 << 30, total=150 << 30),
        "nvmlDeviceGetComputeRunningProcesses": lambda gpu: [
            process(os.getpid(), 100), process(os.getppid(), 200), process(2**22 + 1, None),
        ],
    }  # fmt: skip

    def failing(*_):
        raise NVMLError("Not Supported")

    for name, function in changes.items():
        functions[name] = function or failing
    return SimpleNamespace(
        NVML_CLOCK_SM=1, NVML_CLOCK_MEM=2, NVML_TEMPERATURE_GPU=0, calls=calls, **functions
    )


@pytest.fixture
def use(monkeypatch):
    def install(nvml):
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        monkeypatch.setattr(gpu_state, "_NVML", gpu_state._Nvml())

    return install


def test_a_gpu_is_described(use):
    use(fake_nvml())
    state = gpu_state.snapshot()
    assert state == {
        "driver_version": "580.159.04",
        "cuda_version": "13.1",
        "gpus": [
            {
                "name": "NVIDIA H200",
                "pci_bus_id": "00000000:1B:00.0",
                "compute_capability": "9.0",
                "pcie_generation": 5,
                "pcie_lanes": 16,
                "sm_clock_mhz": 1755,
                "sm_clock_max_mhz": 1980,
                "memory_clock_mhz": 3201,
                "clock_events": ["software power cap", "software thermal slowdown"],
                "temperature_c": 61,
                "power_w": 612.345,
                "power_limit_w": 700.0,
                "memory_used_bytes": 1 << 30,
                "memory_total_bytes": 150 << 30,
                "other_processes": [{"pid": os.getppid(), "memory_bytes": 200}],
                "unseen_processes": 1,
                "own_memory_bytes": 100,
            }
        ],
    }
    assert json.loads(json.dumps(state)) == state


def test_nvml_is_initialised_once(use):
    nvml = fake_nvml()
    use(nvml)
    gpu_state.snapshot()
    gpu_state.snapshot()
    assert nvml.calls == ["init"]


def test_only_what_cannot_change_is_read_once(use):
    """Clocks, temperature, power, memory and limits that a user may set are read each time."""
    once = {
        "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetName",
        "nvmlDeviceGetPciInfo", "nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetMaxClockInfo",
        "nvmlDeviceGetMaxPcieLinkGeneration", "nvmlDeviceGetMaxPcieLinkWidth",
        "nvmlSystemGetDriverVersion", "nvmlSystemGetCudaDriverVersion",
    }  # fmt: skip
    nvml, seen = fake_nvml(), []
    for name, function in list(vars(nvml).items()):
        if name.startswith(("nvmlDevice", "nvmlSystem")):
            counted = lambda *args, name=name, of=function: (seen.append(name), of(*args))[1]  # noqa: E731
            setattr(nvml, name, counted)
    use(nvml)
    first = gpu_state.snapshot()
    assert once <= set(seen)
    seen.clear()
    assert gpu_state.snapshot() == first
    assert not once & set(seen)
    nvml.nvmlDeviceGetEnforcedPowerLimit = lambda gpu: 350_000
    nvml.nvmlDeviceGetClockInfo = lambda gpu, which: 345
    (gpu,) = gpu_state.snapshot()["gpus"]
    assert (gpu["power_limit_w"], gpu["sm_clock_mhz"]) == (350.0, 345)


def test_a_gpu_that_is_not_accessible_is_asked_for_again(use):
    nvml = fake_nvml(nvmlDeviceGetHandleByIndex=None)
    use(nvml)
    assert gpu_state.snapshot()["gpus"] == [{}]
    nvml.nvmlDeviceGetHandleByIndex = lambda index: f"gpu {index}"
    assert gpu_state.snapshot()["gpus"][0]["name"] == "NVIDIA H200"


def test_absent_nvml_gives_nothing(use):
    use(None)
    assert gpu_state.snapshot() == {}
    use(fake_nvml(nvmlInit=None))
    assert gpu_state.snapshot() == {}


def test_what_a_gpu_does_not_tell_is_left_out(use):
    use(
        fake_nvml(
            nvmlDeviceGetPowerUsage=None,
            nvmlDeviceGetMemoryInfo=None,
            nvmlDeviceGetComputeRunningProcesses=None,
        )
    )
    (gpu,) = gpu_state.snapshot()["gpus"]
    left_out = {"power_w", "memory_used_bytes", "memory_total_bytes", "other_processes"}
    assert not left_out & set(gpu)
    assert gpu["temperature_c"] == 61


def test_the_use_by_other_processes_is_that_since_the_last_call(use, monkeypatch):
    asked = []

    def utilization(gpu, since):
        asked.append(since)
        now = since + 10
        samples = ((os.getppid(), now, 60), (os.getppid(), now + 1, 20), (os.getpid(), now, 30),
                   (os.getppid(), since - 1, 99))  # fmt: skip
        return [SimpleNamespace(pid=pid, timeStamp=at, smUtil=used) for pid, at, used in samples]

    use(fake_nvml(nvmlDeviceGetProcessUtilization=utilization))
    monkeypatch.setattr(gpu_state.time, "time_ns", iter([10**9, 2 * 10**9]).__next__)
    first, second = (gpu_state.snapshot()["gpus"][0]["other_processes"] for _ in range(2))
    assert first == [{"pid": os.getppid(), "memory_bytes": 200}]
    assert second == [{"pid": os.getppid(), "memory_bytes": 200, "sm_percent": 40.0}]
    assert asked == [10**6]


@pytest.mark.parametrize("error", [None, lambda *_: []])
def test_without_samples_the_use_is_not_known(use, error):
    use(fake_nvml(nvmlDeviceGetProcessUtilization=error))
    gpu_state.snapshot()
    (gpu,) = gpu_state.snapshot()["gpus"]
    assert "sm_percent" not in gpu["other_processes"][0]


def test_nothing_nvml_does_raises(use):
    broken = fake_nvml()
    del broken.nvmlDeviceGetName
    use(broken)
    assert gpu_state.snapshot() == {}


def test_a_binding_from_before_the_renaming_works(use):
    nvml = fake_nvml(nvmlDeviceGetCurrentClocksThrottleReasons=lambda gpu: 0x8)
    del nvml.nvmlDeviceGetCurrentClocksEventReasons
    use(nvml)
    assert gpu_state.snapshot()["gpus"][0]["clock_events"] == ["hardware slowdown"]


def test_clock_events_are_named():
    assert gpu_state.clock_events(0) == []
    assert gpu_state.clock_events(0x1 | 0x1000) == ["gpu idle", "0x1000"]


def test_a_forked_child_initialises_again(use):
    nvml = fake_nvml()
    use(nvml)
    gpu_state.snapshot()
    child = os.fork()
    if child == 0:
        gpu_state.snapshot()
        os._exit(0 if nvml.calls == ["init", "init"] else 1)
    assert os.waitpid(child, 0)[1] == 0


class FakeDriver:
    def __init__(self, names):
        self.names = names

    def cuDeviceGetCount(self, count):  # noqa: N802
        count._obj.value = len(self.names or ())
        return 3 if self.names is None else 0

    def cuDeviceGetName(self, text, size, ordinal):  # noqa: N802
        text.value = self.names[ordinal].encode()
        return 0


@pytest.mark.parametrize(
    ("driver", "expected"),
    [(["NVIDIA A", "NVIDIA B"], ["NVIDIA A", "NVIDIA B"]), (None, ["NVIDIA H200"])],
)
def test_names_come_from_the_driver_once_cuda_has_started(use, monkeypatch, driver, expected):
    use(fake_nvml())
    monkeypatch.setattr(gpu_state, "find_driver", lambda load: "/x/libcuda.so.1")
    monkeypatch.setattr(gpu_state.ctypes, "CDLL", lambda path: FakeDriver(driver))
    assert gpu_state.device_names() == expected


def test_without_a_driver_there_are_no_names(use, monkeypatch):
    use(None)
    monkeypatch.setattr(gpu_state, "find_driver", lambda load: None)
    assert gpu_state.device_names() == []


@pytest.mark.gpu
def test_a_real_gpu_tells_its_name():
    state = gpu_state.snapshot()
    if not state.get("gpus"):
        pytest.skip("no NVIDIA GPU")
    assert state["gpus"][0]["name"]
