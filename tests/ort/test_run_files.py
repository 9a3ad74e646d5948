"""ONNX Runtime's JSON profile of single runs: one file per run, with its device work."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

import epprof_nb
from epprof_nb.data.schema import MISSING
from epprof_nb.onnxruntime import json_profile, run_profile_files
from tests.helpers.threads import run_all
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
    ends = [node["ts"] + node["dur"] for node in of_node.values()]
    for kernel in kernels:
        node = of_node[kernel["args"]["parent_name"]]
        # Two stamps of the node's start, taken one after the other; the system may suspend the
        # thread in between. The order with other stamps is certain, but for rounding.
        earlier = max((end for end in ends if end <= node["ts"]), default=0)
        assert earlier - 2 <= kernel["ts"] <= node["ts"] + node["dur"] + 2
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

    run_all(threading.Thread(target=work) for _ in range(4))
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

    run_all(threading.Thread(target=work, args=(o,)) for o in (options, plain, options))
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
    assert done.wait(120)


@pytest.fixture
def whole(installed, tmp_path):
    """A session that ONNX Runtime profiles as a whole."""
    settings = installed.SessionOptions()
    settings.enable_profiling = True
    settings.profile_file_prefix = str(tmp_path / "whole")
    session = installed.InferenceSession(models.chain(), settings)
    yield session
    # On a GPU, its device work is recorded until its profile ends.
    session.end_profiling()


def test_a_session_profiled_as_a_whole_has_files_of_its_runs_too(
    installed, whole, x, options, tmp_path
):
    with epprof_nb.profile() as prof:
        for _ in range(3):
            whole.run(None, {"x": x}, options)
    theirs = json.loads(Path(whole.end_profiling()).read_text())
    found = files(tmp_path)
    assert len(found) == 3
    expected = [e for e in theirs if e["cat"] == "Node" and e["name"].endswith("_kernel_time")]
    for number, path in enumerate(found):
        events = json.loads(path.read_text())
        keys = ("cat", "name", "ph", "pid", "tid")
        nodes = [e for e in events if e["cat"] == "Node"]
        of_run = expected[3 * number : 3 * number + 3]
        assert [[e[k] for k in keys] for e in nodes] == [[e[k] for k in keys] for e in of_run]
        for event, other in zip(nodes, of_run, strict=True):
            assert event["args"].keys() == other["args"].keys() - {"thread_scheduling_stats"}
            assert event["args"] == {key: other["args"][key] for key in event["args"]}
        assert events[-1]["name"] == "model_run"
        assert events[-1]["ts"] == 0
        assert all(e["ts"] >= 0 and e["ts"] + e["dur"] <= events[-1]["dur"] + 1 for e in events)
        assert path.read_text().count("\n") == len(events) + 2
    (note,) = (n for n in prof.info["notes"] if "written by epprof_nb" in n)
    assert note.startswith(f"3 profile files {tmp_path / 'run'}_*.json")
    # Then ONNX Runtime writes the files of runs itself.
    whole.run(None, {"x": x}, options)
    assert len(files(tmp_path)) == 4


def test_runs_of_a_whole_session_that_fail_write_no_file(whole, x, options, tmp_path):
    with pytest.raises(Exception, match="rank"):
        whole.run(None, {"x": x[0]}, options)
    assert files(tmp_path) == []


@pytest.mark.parametrize("as_a_whole", [False, True])
def test_a_prefix_that_cannot_be_written_leaves_a_note(installed, whole, x, tmp_path, as_a_whole):
    session = whole if as_a_whole else installed.InferenceSession(models.chain())
    made = installed.RunOptions()
    prefix = str(tmp_path / "nowhere" / "run")
    epprof_nb.onnxruntime.enable_profiling(made, profile_file_prefix=prefix)
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x}, made)
    (note,) = (n for n in prof.info["notes"] if "cannot be written" in n)
    assert note.startswith(f"1 run without a profile file: {prefix}_*.json")
    assert len(prof.by_node()) == 3
