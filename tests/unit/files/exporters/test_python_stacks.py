"""Python stacks in exported files: collapsed stacks, speedscope, Chrome and Perfetto."""

import json

import pytest

from epprof_nb.profiles import read_trace
from tests.unit.analysis.breakdowns.test_stack_lines import training

LEAF = "<module> (In[5]:2);train (In[3]:7);forward (model.py:2);call (nn.py:40)"


def lines_of(path):
    return sorted(path.read_text().splitlines())


def test_collapsed_stacks_have_the_device_time_of_each_path(tmp_path):
    path = tmp_path / "stacks.txt"
    training().to_collapsed(path)
    assert lines_of(path) == [
        "(no stack);kernel 8",
        f"{LEAF};linear (nn.py:9);kernel 20",
        f"{LEAF};relu (nn.py:12);kernel 5",
        "<module> (In[5]:4);memcpy 2",
    ]
    training().to_collapsed(path, library=False)
    assert "<module> (In[5]:2);train (In[3]:7);forward (model.py:2);kernel 25" in lines_of(path)


def test_collapsed_stacks_have_launches_or_waits(tmp_path):
    path = tmp_path / "stacks.txt"
    training().to_collapsed(path, measure="launches")
    assert sum(int(line.rpartition(" ")[2]) for line in lines_of(path)) == 5
    training().to_collapsed(path, measure="wait_ns")
    assert lines_of(path) == ["<module> (In[5]:4) 19"]
    with pytest.raises(ValueError, match="device_ns, launches, waits, wait_ns"):
        training().to_collapsed(path, measure="bytes")


def test_redaction_covers_collapsed_stacks(tmp_path):
    path = tmp_path / "stacks.txt"
    training().to_collapsed(path, redact=True)
    text = path.read_text()
    assert "model.py" not in text
    assert "forward" not in text
    assert "(path)" in text


def test_speedscope_has_a_profile_of_python_frames(tmp_path):
    path = tmp_path / "run.speedscope.json"
    training().to_speedscope(path)
    file = json.loads(path.read_text())
    (stacks,) = [p for p in file["profiles"] if p["name"] == "device_ns by Python stack"]
    assert sum(stacks["weights"]) == stacks["endValue"] == 35
    frames = file["shared"]["frames"]
    named = [[frames[i]["name"] for i in sample] for sample in stacks["samples"]]
    assert ["<module>", "train", "forward", "call", "linear", "kernel"] in named
    assert {"name": "forward", "file": "model.py", "line": 2} in frames
    waits = next(p for p in file["profiles"] if p["name"] == "wait_ns by Python stack")
    assert waits["weights"] == [19]


def test_a_chrome_trace_has_the_stack_of_calls_and_activities(tmp_path):
    path = tmp_path / "trace.json"
    training().to_chrome(path)
    trace = json.loads(path.read_text())
    kernels = [e for e in trace["traceEvents"] if e.get("cat") == "kernel"]
    first = min(kernels, key=lambda event: event["ts"])
    assert first["args"]["launched_at"] == "forward (model.py:2)"
    names, at = [], first["sf"]
    while at is not None:
        frame = trace["stackFrames"][at]
        names.append(frame["name"])
        at = frame.get("parent")
    assert names == [*LEAF.split(";"), "linear (nn.py:9)"][::-1]
    assert sum("sf" in event for event in trace["traceEvents"]) == 3 + 3
    assert len(read_trace(path).activities) == 5


def test_a_perfetto_trace_has_where_each_kernel_was_launched(tmp_path):
    pytest.importorskip("perfetto")
    path = tmp_path / "run.pftrace"
    training().to_perfetto(path)
    data = path.read_bytes()
    assert b"launched_at" in data
    assert b"forward (model.py:2)" in data
    assert b"linear (nn.py:9)\ncall (nn.py:40)\nforward (model.py:2)\ntrain (In[3]:7)" in data
