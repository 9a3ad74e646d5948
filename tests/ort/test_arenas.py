"""Memory of sessions: the arena of the CPU provider stands for those of providers for GPUs."""

from __future__ import annotations

import gc

import numpy as np
import onnxruntime
import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.data.schema import MEMORY_SEGMENTS
from epprof_nb.recording.memory import pool_totals, process_memory, recorder
from epprof_nb.recording.onnxruntime import arenas as module
from epprof_nb.recording.onnxruntime.arenas import arenas
from epprof_nb.recording.onnxruntime.session_pointer import session_pointer
from tests.helpers import tiny
from tests.ort import models

CPU = "CPUExecutionProvider"


@pytest.fixture
def on_cpu(installed, monkeypatch):
    monkeypatch.setattr(module, "_PLACES", {CPU: module._Place("Cpu", 0, 0)})
    gc.collect()


def made(entries=(), path=None):
    options = onnxruntime.SessionOptions()
    for entry in entries:
        options.add_session_config_entry(*entry)
    return onnxruntime.InferenceSession(path or models.chain(), options, providers=[CPU])


def arena(name):
    (found,) = (one for one in arenas() if one.session == name)
    return found


def test_the_arena_of_a_session_has_its_bytes(on_cpu, tmp_path):
    path = tmp_path / "large.onnx"
    path.write_bytes(models.chain())
    session = made(path=str(path))
    before = arena("large.onnx")
    assert (before.device, before.reason) == (0, "")
    session.run(None, {"x": np.ones((500_000, 4), np.float32)})
    after = arena("large.onnx")
    assert after.held >= before.held + 8_000_000
    assert after.held >= after.in_use >= 0
    del session
    gc.collect()
    assert not any(one.session == "large.onnx" for one in arenas())


def test_sessions_of_one_name_are_summed(on_cpu, tmp_path):
    path = tmp_path / "twice.onnx"
    path.write_bytes(models.chain())
    feeds = {"x": np.ones((500_000, 4), np.float32)}
    first = made(path=str(path))
    first.run(None, feeds)
    one = arena("twice.onnx")
    second = made(path=str(path))
    second.run(None, feeds)
    assert arena("twice.onnx").held == 2 * one.held


def test_only_providers_with_arenas_on_gpus_are_asked(installed):
    session = made()
    assert arenas() == []
    assert session_pointer(session._sess) is not None


def test_the_pointer_is_not_guessed(installed):
    assert session_pointer(object()) is None
    assert session_pointer(None) is None
    assert session_pointer(made()) is None  # the Python object, which has the native one
    first, second = made()._sess, made()._sess
    assert session_pointer(first) != session_pointer(second)
    assert session_pointer(first) == session_pointer(first)


def test_memory_that_a_session_does_not_have_is_an_error_with_words(installed):
    session = made()
    with pytest.raises(RuntimeError, match=r"\w+"):
        _native.ort_allocator_statistics(session_pointer(session._sess), "Cuda", 1, 0x10DE, 0)


def test_an_arena_that_cannot_be_read_says_why(on_cpu, monkeypatch):
    session = made()
    monkeypatch.setattr(module, "session_pointer", lambda native: None)
    (found,) = {one.reason for one in arenas()}
    assert found == "this release of ONNX Runtime hides its sessions"
    del session


def test_a_profile_has_the_arenas(on_cpu, monkeypatch, tmp_path, no_arenas):
    path = tmp_path / "shown.onnx"
    path.write_bytes(models.chain())
    session = made(path=str(path))
    for each in (pool_totals, recorder, process_memory):
        monkeypatch.setattr(each, "used_devices", lambda: [0])
    x = np.ones((500_000, 4), np.float32)
    with epprof_nb.profile(detail="memory") as prof:
        session.run(None, {"x": x})
    given = {"pool": "driver", "device_id": 0, "address": 64, "bytes": 1 << 30, "allocated_ns": 0}
    prof.tables["memory_segments"] = tiny.table(MEMORY_SEGMENTS, [given])
    pools = prof.memory_pools().set_index("pool")
    row, now = pools.loc["ONNX Runtime shown.onnx"], arena("shown.onnx")
    assert row["note"] == "at the end of the profile"
    assert row["held_bytes"] == now.held
    assert row["in_use_bytes"] == now.in_use
    assert row["free_bytes"] == now.held - now.in_use
    # The row of the driver leaves out what the arena took from it, and says so.
    of_driver = pools.loc["driver"]
    assert of_driver["note"] == "without what is in the pools of ONNX Runtime shown.onnx"
    assert (1 << 30) - now.held <= of_driver["held_bytes"] <= (1 << 30) - x.nbytes
    assert "ONNX Runtime" not in pools.index
