"""Pools of libraries and the memory of the process, with fakes of CuPy, JAX and NVML."""

import contextlib
import sys
from types import SimpleNamespace

import pytest

import epprof_nb
from epprof_nb.analysis.base.index import index_of
from epprof_nb.analysis.memory.headline_memory import memory_lines
from epprof_nb.data.schema import MEMORY, OPS
from epprof_nb.data.table import Table
from epprof_nb.recording.cupti import gpu_state
from epprof_nb.recording.memory import pool_totals, process_memory, recorder
from epprof_nb.recording.memory.block_tables import pool_tables
from epprof_nb.recording.memory.pool_totals import LibraryPool, pools_on
from tests.helpers import tiny


class CupyPool:
    def __init__(self, used, held):
        self.used, self.held = used, held

    def used_bytes(self):
        return self.used

    def total_bytes(self):
        return self.held

    def malloc(self, size):
        raise NotImplementedError


@pytest.fixture(autouse=True)
def no_pool_of_other_tests(monkeypatch):
    """Kernels in Python of other tests have left memory in their pool of this device."""
    monkeypatch.setattr(pool_totals, "_own", lambda _: iter(()))


@pytest.fixture
def cupy(monkeypatch):
    pool = CupyPool(30, 100)
    made = SimpleNamespace(
        __spec__=None,
        pool=pool,
        get_default_memory_pool=lambda: pool,
        cuda=SimpleNamespace(
            Device=lambda device: contextlib.nullcontext(), get_allocator=lambda: pool.malloc
        ),
    )
    monkeypatch.setitem(sys.modules, "cupy", made)
    return made


def jax_device(number, stats):
    return SimpleNamespace(platform="gpu", local_hardware_id=number, memory_stats=lambda: stats)


@pytest.fixture
def jax(monkeypatch):
    def install(*devices, started=True):
        bridge = SimpleNamespace(_backends={"cuda": 1} if started else {})
        monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)
        made = SimpleNamespace(__spec__=None, local_devices=lambda: devices)
        monkeypatch.setitem(sys.modules, "jax", made)

    return install


def of_libraries(device=0):
    return [pool for pool in pools_on(device) if pool.held or pool.reason]


def test_the_pool_of_cupy(cupy):
    assert of_libraries() == [LibraryPool("CuPy", 30, 100)]


def test_another_allocator_of_cupy_is_read_or_named(cupy):
    class MemoryAsyncPool(CupyPool):
        pass

    cupy.cuda.get_allocator = lambda: MemoryAsyncPool(5, 9).malloc
    assert of_libraries()[1] == LibraryPool("CuPy MemoryAsyncPool", 5, 9)

    def rmm_allocator(size):
        raise NotImplementedError

    cupy.cuda.get_allocator = lambda: rmm_allocator
    named = of_libraries()[1]
    assert (named.held, "rmm_allocator" in named.reason) == (None, True)


def test_a_pool_that_cannot_be_read_says_why(cupy):
    def broken():
        raise RuntimeError("context is destroyed")

    cupy.get_default_memory_pool = broken
    (pool,) = of_libraries()
    assert pool.held is None
    assert pool.reason.endswith("RuntimeError: context is destroyed")


def test_the_pool_of_jax(jax):
    jax(jax_device(0, {"bytes_in_use": 7, "pool_bytes": 70}), jax_device(1, {"bytes_in_use": 8}))
    assert of_libraries(0) == [LibraryPool("JAX", 7, 70)]
    (other,) = of_libraries(1)
    assert other[:3] == ("JAX", 8, 8)
    assert "does not report how much" in other.reason
    jax(jax_device(0, None))
    assert of_libraries(0)[0].held is None
    jax(jax_device(0, {"bytes_in_use": 7}), started=False)
    assert of_libraries(0) == []


def test_a_profile_has_the_pools_and_how_much_they_grew(cupy, monkeypatch):
    for module in (pool_totals, recorder, process_memory):
        monkeypatch.setattr(module, "used_devices", lambda: [0])
    process = [700]
    monkeypatch.setattr(gpu_state, "own_memory_bytes", lambda: process[0])
    with epprof_nb.profile(detail="memory", frameworks=()) as prof:
        cupy.pool.held, process[0] = 140, 1000
    assert prof.info["memory"]["pools"] == [
        {
            "pool": "CuPy", "device_id": 0, "held_bytes": 140, "in_use_bytes": 30,
            "held_before_bytes": 100, "note": "",
        }
    ]  # fmt: skip
    held = prof.memory_pools().set_index("pool")["held_bytes"]
    assert held.to_dict() == {"CuPy": 140, "(before this profile)": 600, "(unnamed)": 260}
    (row,) = prof.memory_at().to_dict("records")
    assert (row["pool"], row["device_id"], row["bytes"]) == ("CuPy", 0, 30)
    assert row["name"] == "(as at the end of the profile)"
    (head, _) = memory_lines(index_of(prof))
    assert "30 B in use at the peak, 30 B of it as at the end" in head


@pytest.mark.parametrize(
    ("pools", "expected"),
    [
        ([("CuPy", 140, 100, 30)], []),  # all of it may be what the driver gave
        ([("CuPy", 140, 100, 90)], [("CuPy", 50)]),
        ([("CuPy", 100, 100, 90)], [("CuPy", 90)]),
        ([("CuPy", 130, 100, 90), ("JAX", 50, 0, 30)], [("CuPy", 60), ("JAX", 20)]),
        ([("CuPy", None, 0, None)], []),
    ],
)
def test_what_the_driver_gave_a_library_is_in_its_own_blocks_only(pools, expected):
    given = tiny.table(
        MEMORY,
        [
            {"memory_kind": "device", "operation": "allocation", "address": 64, "bytes": 40,
             "device_id": 0, "time_ns": 5, "op_id": -1, "stream_id": -1},
        ],
    )  # fmt: skip
    libraries = [
        {"pool": name, "device_id": 0, "held_bytes": held, "held_before_bytes": before,
         "in_use_bytes": used}
        for name, held, before, used in pools
    ]  # fmt: skip
    blocks = pool_tables(given, [], Table(OPS), 0, libraries=libraries)["memory_blocks"]
    of_driver, others = blocks.take(slice(1)), blocks.take(slice(1, None))
    assert of_driver["bytes"].tolist() == [40]
    found = zip(others.names("pool").to_list(), others["bytes"].tolist(), strict=True)
    assert list(found) == expected


def test_a_process_held_nothing_before_it_started_cuda(monkeypatch):
    devices = []
    for module in (pool_totals, recorder, process_memory):
        monkeypatch.setattr(module, "used_devices", lambda: devices)
    monkeypatch.setattr(gpu_state, "own_memory_bytes", lambda: 1000)
    with epprof_nb.profile(detail="memory", frameworks=()) as prof:
        devices.append(0)
    assert prof.info["memory"]["process_before_bytes"] == 0
    with epprof_nb.profile(detail="memory", frameworks=()) as prof:
        pass
    assert prof.info["memory"]["process_before_bytes"] == 1000


@pytest.fixture
def gpu(monkeypatch):
    """A GPU in a container that hides its processes; `used` bytes of it are in use."""
    made = SimpleNamespace(
        used=3 << 20, processes=[], nvmlMemory_v2=2, nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda index: index,
    )  # fmt: skip
    made.nvmlDeviceGetMemoryInfo = lambda gpu, version: SimpleNamespace(used=made.used)
    made.nvmlDeviceGetComputeRunningProcesses = lambda gpu: made.processes
    monkeypatch.setattr(gpu_state._NVML, "get", lambda: made)
    made.devices = []
    monkeypatch.setattr(process_memory, "used_devices", lambda: made.devices)
    return made


def test_the_gpu_stands_for_the_process_only_if_it_was_idle(gpu):
    memory = process_memory.ProcessMemory()
    memory.look()

    def create():
        gpu.used, gpu.devices = 500 << 20, [0]

    memory.measure_context(create)
    gpu.used += 1 << 20
    memory.measure_context(create)  # it has one
    assert (memory.read(), memory.context_bytes) == (501 << 20, 500 << 20)
    gpu.processes = [SimpleNamespace(pid=2**22 + 1, usedGpuMemory=None)] * 2
    assert memory.read() is None  # one of them is another process
    del gpu.processes[0]
    assert memory.read() == 501 << 20
    gpu.processes = []
    memory.forget()
    assert memory.context_bytes is None
    memory.look()  # too late: this process uses the GPU
    assert memory.read() is None


def test_a_gpu_that_another_process_used_says_nothing(gpu):
    memory = process_memory.ProcessMemory()
    gpu.used = 700 << 20
    memory.look()
    gpu.devices = [0]
    assert memory.read() is None
