"""The host device: copies and memory accounting."""

from __future__ import annotations

import threading
import weakref

import numpy as np
import pytest

from epprof_nb import host
from epprof_nb.host import memory
from tests.helpers.host_streams import wait_until

pytestmark = pytest.mark.usefixtures("quiet_device")


def test_to_device_lets_go_of_its_source_at_once(stream):
    gate, source = threading.Event(), np.ones(1000)
    host.launch(gate.wait, stream=stream)
    array = host.to_device(source, stream)
    source[:] = 2
    gate.set()
    assert host.to_host(array, stream).tolist() == [1.0] * 1000


@pytest.mark.parametrize("value", [np.float32(3), np.zeros((0, 4)), np.arange(6).reshape(2, 3).T])
def test_any_shape_survives_the_round_trip(value):
    found = host.to_host(host.to_device(value))
    assert found.dtype == value.dtype
    assert np.array_equal(found, value)


def test_memory_is_counted_and_released_with_the_last_use(stream):
    before = host.memory_info().used
    array = host.empty((1000, 10), np.float64)
    assert host.memory_info().used == before + 80_000
    assert host.memory_info().peak >= before + 80_000
    gate = threading.Event()
    host.launch(lambda view: gate.wait(), array, stream=stream)
    reference = weakref.ref(array)
    del array
    assert reference() is not None, "work in flight keeps its arrays"
    assert host.memory_info().used == before + 80_000
    gate.set()
    stream.synchronize()
    assert wait_until(lambda: reference() is None)
    assert host.memory_info().used == before


def test_memory_beyond_the_limit_is_refused():
    info = host.memory_info()
    host.set_memory_limit(info.used + 1000)
    try:
        with pytest.raises(MemoryError, match=r"800 kB requested.*set_memory_limit"):
            host.empty(100_000, np.float64)
        with pytest.raises(MemoryError, match=r"1\.00 MB requested"):
            host.empty(999_700, np.uint8)
        assert host.memory_info().used == info.used
        kept = host.empty(1000, np.uint8)
        assert kept.nbytes == 1000
    finally:
        host.set_memory_limit(info.limit)


def test_an_allocation_that_numpy_refuses_is_not_counted():
    before = host.memory_info().used
    with pytest.raises(ValueError, match="negative"):
        host.empty(-1)
    assert host.memory_info().used == before


def test_the_default_limit_respects_a_container(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    limit.write_text("2000000\n")
    monkeypatch.setattr(memory, "_CGROUP_LIMIT", limit)
    assert memory._default_limit() == 1_000_000
    limit.write_text("max\n")
    assert memory._default_limit() > 1_000_000
