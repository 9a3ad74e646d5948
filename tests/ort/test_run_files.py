"""ONNX Runtime's JSON profile of single runs: one file per run, with its device work."""

from __future__ import annotations

import json
import threading

import pytest

import epprof_nb
from epprof_nb.data.schema import MISSING
from epprof_nb.onnxruntime import json_profile, run_profile_files
from tests.ort import models


@pytest.fixture
def options(installed, tmp_path):
    made = installed.RunOptions()
    prefix = str(tmp_path / "run")
    epprof_nb.onnxruntime.enable_profiling(made, profile_file_prefix=prefix)
    return made


@pytest.fixture
def with_device(monkeypatch):
    """One event per node of the requested run, with the exact times of the node."""

    def device_events(ops, activities, number, run_op=0):
        run = ops["run_id"][ops["op_id"] == run_op]
        mine = (ops["session"] == number) & ops.names("category").equals("node")
        mine &= (ops["run_id"] == run[0]) & (run[0] != MISSING)
        part = ops.take(mine)
        for row, name in enumerate(part.names("name").to_list()):
            start, duration = int(part["start_ns"][row]), int(part["duration_ns"][row])
            yield f"kernel of {name}", start, duration, 1, ("parent_name", name)

    monkeypatch.setattr(json_profile, "driver_present", lambda: True)
    monkeypatch.setattr(json_profile, "device_events", device_events)


def files(folder):
    return sorted(folder.glob("run*.json"))


def check_kernels(events):
    """Each kernel lies where its node does, in ONNX Runtime's own time (microseconds)."""
    of_node = {e["name"].removesuffix("_kernel_time"): e for e in events if e["cat"] == "Node"}
    kernels = [e for e in events if e["cat"] == "Kernel"]
    assert sorted(e["args"]["parent_name"] for e in kernels) == sorted(of_node)
    for kernel in kernels:
        node = of_node[kernel["args"]["parent_name"]]
        # Stamps of one moment, taken one after the other; a busy machine may come between.
        assert abs(kernel["ts"] - node["ts"]) < 20_000
    (run,) = (e for e in events if e["name"] == "model_run")
    assert all(run["ts"] - 2 <= k["ts"] <= run["ts"] + run["dur"] + 2 for k in kernels)


def test_each_run_has_a_file_of_its_own(installed, x, options, tmp_path):
    session = installed.InferenceSession(models.chain())
    for _ in range(20):
        session.run(None, {"x": x}, options)
    found = files(tmp_path)
    assert len(found) == 20
    for path in found:
        events = json.loads(path.read_text())
        assert sum(e["cat"] == "Node" for e in events) == 3
        assert not any(e["cat"] == "Kernel" for e in events)


def test_runs_at_once_with_the_same_options_have_files_of_their_own(
    installed, x, options, tmp_path, with_device
):
    session = installed.InferenceSession(models.wide())

    def work():
        for _ in range(10):
            session.run(None, {"x": x}, options)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = files(tmp_path)
    assert len(found) == 40
    for path in found:
        events = json.loads(path.read_text())
        assert sum(e["cat"] == "Node" for e in events) == 7
        check_kernels(events)
    assert not run_profile_files._naming_lock.locked()


def test_a_run_profiled_twice_gives_the_file_and_the_ops(
    installed, x, options, tmp_path, with_device
):
    session = installed.InferenceSession(models.chain())
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x}, options)
        session.run(None, {"x": x})
        session.run(None, {"x": x}, options)
    assert (prof.ops["category"] == "node").sum() == 9
    assert len(files(tmp_path)) == 2
    for path in files(tmp_path):
        check_kernels(json.loads(path.read_text()))


def test_runs_with_profiling_on_off_and_on_at_once_are_told_apart(
    installed, x, options, tmp_path, with_device
):
    session = installed.InferenceSession(models.chain())
    plain = installed.RunOptions()
    begin = threading.Barrier(3)

    def work(given):
        begin.wait()
        session.run(None, {"x": x}, given)

    threads = [threading.Thread(target=work, args=(o,)) for o in (options, plain, options)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(files(tmp_path)) == 2
    for path in files(tmp_path):
        events = json.loads(path.read_text())
        assert sum(e["name"] == "model_run" for e in events) == 1
        check_kernels(events)


def test_a_run_that_fails_keeps_no_other_from_its_file(installed, x, options, tmp_path):
    session = installed.InferenceSession(models.chain())
    for bad in ({"nothing": x}, {"x": x.astype(int)}, {}):
        with pytest.raises(Exception, match=r".+"):
            session.run(None, bad, options)
    options.terminate = True
    with pytest.raises(Exception, match="terminate"):
        session.run(None, {"x": x}, options)
    options.terminate = False
    before = len(files(tmp_path))
    session.run(None, {"x": x}, options)
    assert len(files(tmp_path)) == before + 1
    assert not run_profile_files._naming_lock.locked()
    assert not run_profile_files._active_runs


def test_what_goes_wrong_with_the_device_work_costs_no_run(
    installed, x, options, tmp_path, monkeypatch
):
    def broken(*_):
        raise RuntimeError("no events today")

    monkeypatch.setattr(json_profile, "driver_present", lambda: True)
    monkeypatch.setattr(json_profile, "device_events", broken)
    said = []
    monkeypatch.setattr("sys.unraisablehook", lambda what: said.append(str(what.exc_value)))
    session = installed.InferenceSession(models.chain())
    assert session.run(None, {"x": x}, options)[0].shape == x.shape
    assert said == ["no events today"]
    assert len(json.loads(files(tmp_path)[0].read_text())) > 3


def test_other_ways_to_run_write_files_too(installed, x, options, tmp_path, with_device):
    session = installed.InferenceSession(models.chain())
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("t2")
    session.run_with_iobinding(binding, options)
    value = installed.OrtValue.ortvalue_from_numpy(x)
    session.run_with_ort_values(None, {"x": value}, run_options=options)
    assert len(files(tmp_path)) == 2
    for path in files(tmp_path):
        check_kernels(json.loads(path.read_text()))
    done = threading.Event()
    session.run_async(None, {"x": x}, lambda *_: done.set(), None, options)
    assert done.wait(10)


def test_a_session_profiled_as_a_whole_has_its_one_file(installed, x, options, tmp_path):
    of_session = installed.SessionOptions()
    of_session.enable_profiling = True
    of_session.profile_file_prefix = str(tmp_path / "whole")
    session = installed.InferenceSession(models.chain(), of_session)
    session.run(None, {"x": x}, options)
    assert session.end_profiling().startswith(str(tmp_path / "whole"))
    assert files(tmp_path) == []
    session.run(None, {"x": x}, options)
    assert len(files(tmp_path)) == 1
