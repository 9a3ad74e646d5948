"""Device work in ONNX Runtime's own JSON profile."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, API_CALLS, OPS
from epprof_nb.data.table import Table
from epprof_nb.onnxruntime import json_profile
from epprof_nb.recording.onnxruntime import sessions
from tests.ort import models

HOSTILE = 'void k<"a">(\\ \n\t größe </script>)'


@pytest.fixture
def session(installed, tmp_path):
    options = installed.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "whole")
    return installed.InferenceSession(models.chain(), options)


def written(session):
    return json.loads(Path(session.end_profiling()).read_text())


def test_events_land_in_the_file_in_its_own_time(session, x):
    session.run(None, {"x": x})
    begin = _native.now_ns()
    session.run(None, {"x": x})
    end = _native.now_ns()
    session.run(None, {"x": x})
    number = sessions.observed(session).number
    args = ("stream", "7", "grid_x", "3", "op_name", "MatMul", "parent_name", HOSTILE)
    _native.ort_add_device_event(number, 0, False, HOSTILE, begin, end - begin, 123, args)
    events = written(session)
    ours = [e for e in events if e["cat"] == "Kernel"]
    assert len(ours) == 1
    assert ours[0]["name"] == HOSTILE
    assert ours[0]["tid"] == 123
    assert ours[0]["args"]["parent_name"] == HOSTILE
    assert ours[0]["args"]["grid_x"] == "3"
    first, second, third = (e for e in events if e["name"] == "model_run")
    # The event encloses the second run and no other, by the runtime's clock (microseconds; each
    # clock rounds). The system may suspend the thread between a stamp and the run it is for, so
    # only the order of the times is certain.
    assert first["ts"] + first["dur"] - 2 <= ours[0]["ts"] <= second["ts"] + 2
    ended = ours[0]["ts"] + ours[0]["dur"]
    assert second["ts"] + second["dur"] - 2 <= ended <= third["ts"] + 2
    assert ours[0]["dur"] == (end - begin) // 1000


def test_events_go_to_their_own_session_only(session, installed, x, tmp_path):
    number = sessions.observed(session).number
    _native.ort_add_device_event(number + 1000, 0, False, "other", 0, 1, 1, ())
    assert all(e["cat"] != "Kernel" for e in written(session))


def test_a_recorded_session_ends_its_recording(installed, x, tmp_path, monkeypatch):
    monkeypatch.setattr(json_profile, "driver_present", lambda: True)
    options = installed.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "whole")
    session = installed.InferenceSession(models.chain(), options)
    session.run(None, {"x": x})
    from epprof_nb.recording.session.service import service

    assert service.open_subscriptions == 1
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x})
    assert (prof.ops["category"] == "node").sum() == 3
    assert written(session)
    assert service.open_subscriptions == 0
    session = installed.InferenceSession(models.chain(), options)
    assert service.open_subscriptions == 1
    del session  # without end_profiling()
    assert service.open_subscriptions == 0


def test_a_session_of_our_provider_is_recorded_without_install(x, tmp_path, monkeypatch):
    onnxruntime = pytest.importorskip("onnxruntime")
    from epprof_nb import ep
    from epprof_nb.recording.session.service import service

    monkeypatch.setattr(json_profile, "driver_present", lambda: True)
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "whole")
    session = ep.session(models.chain(), sess_options=options)
    assert service.open_subscriptions == 1
    session.run(None, {"x": x})
    kernels = [e for e in written(session) if e["cat"] == "Kernel"]
    assert [e["args"]["op_name"] for e in kernels] == ["Relu", "MatMul", "Sigmoid"]
    assert service.open_subscriptions == 0


def test_only_work_of_the_sessions_nodes_is_taken():
    ops = Table(
        OPS,
        {
            "op_id": np.array([1, 2, 3]),
            "name": CategoryColumn.of(["mine", "matmul_0", "matmul_0"]),
            "op_type": CategoryColumn.of(["range", "MatMul", "MatMul"]),
            "session": np.array([-1, 5, 6]),
        },
    )
    activities = Table(
        ACTIVITIES,
        {
            "kind": CategoryColumn.of(["kernel", "kernel", "memcpy", "synchronization", "kernel"]),
            "name": CategoryColumn.of(["k1", "k2", "HtoD", "sync", "k3"]),
            "op_id": np.array([1, 2, 2, 2, 3]),
            "stream_id": np.array([7, 7, 7, 7, 7]),
            "start_ns": np.array([10, 20, 30, 40, 50]),
            "duration_ns": np.array([1, 2, 3, 4, 5]),
            "grid_x": np.array([1, 2, -1, -1, 1]),
            "bytes": np.array([-1, -1, 64, -1, -1]),
        },
    )
    activities = activities.replace(correlation_id=np.array([-1, 8, -1, -1, 9]))
    kernel, copy = json_profile.device_events(ops, activities, 5)
    assert kernel[:3] == ("k2", 20, 2)
    assert kernel[4][:4] == ("stream", "7", "grid_x", "2")
    assert kernel[4][-6:] == ("correlation_id", "8", "op_name", "MatMul", "parent_name", "matmul_0")
    assert copy[0] == "HtoD"
    assert "bytes" in copy[4]
    assert copy[4][:4] == ("stream", "7", "grid_x", "-1")
    assert copy[4][12:14] == ("block_z", "-1")
    assert "correlation_id" not in copy[4]


def test_only_calls_of_the_sessions_nodes_are_taken():
    ops = Table(
        OPS,
        {
            "op_id": np.array([2, 3]),
            "name": CategoryColumn.of(["matmul_0", "matmul_0"]),
            "op_type": CategoryColumn.of(["MatMul", "MatMul"]),
            "session": np.array([5, 6]),
            "run_id": np.array([1, 2]),
        },
    )
    calls = Table(
        API_CALLS,
        {
            "name": CategoryColumn.of(["cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuLaunchKernel"]),
            "op_id": np.array([2, -1, 3]),
            "thread_id": np.array([77, 77, 77]),
            "start_ns": np.array([10, 20, 30]),
            "duration_ns": np.array([1, 2, 3]),
            "correlation_id": np.array([8, 9, 10]),
        },
    )
    (call,) = json_profile.call_events(ops, calls, 5)
    assert call[:4] == ("cuLaunchKernel", 10, 1, 77)
    args = ("correlation_id", "8", "op_name", "MatMul", "parent_name", "matmul_0")
    assert call[4] == args


def test_calls_are_events_of_an_api(session, x):
    number, begin = sessions.observed(session).number, _native.now_ns()
    _native.ort_add_device_event(number, 0, True, "cuLaunchKernel", begin, 1000, 5, ())
    (call,) = (e for e in written(session) if e["cat"] == "Api")
    assert (call["name"], call["tid"], call["dur"]) == ("cuLaunchKernel", 5, 1)
