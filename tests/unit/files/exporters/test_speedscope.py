"""Speedscope's JSON: valid profiles whose stacks sum up to the tables."""

import gzip
import json

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import epprof_nb
from epprof_nb.cli import main
from epprof_nb.files.exporters import json_rows
from epprof_nb.files.exporters.speedscope import to_speedscope
from epprof_nb.testing import synthetic_profile
from tests.helpers.tiny import activity, call, kernel, line, nested, op, profile
from tests.paths import DATA


@pytest.fixture
def written(tmp_path):
    def write(some):
        path = tmp_path / "run.speedscope.json"
        to_speedscope(some, path)
        return json.loads(path.read_text(encoding="ascii"))

    return write


def named(file):
    """Profiles by name, with the stacks of samples and the frames of events by name."""
    frames = [frame["name"] for frame in file["shared"]["frames"]]
    shown = {}
    for one in file["profiles"]:
        assert one["unit"] == "nanoseconds"
        if one["type"] == "sampled":
            stacks = [[frames[i] for i in stack] for stack in one["samples"]]
            assert len(stacks) == len(one["weights"])
            assert min(one["weights"]) >= 0
            assert sum(one["weights"]) <= one["endValue"] - one["startValue"]
            pairs = zip(stacks, one["weights"], strict=True)
            shown[one["name"]] = [pair for pair in pairs if pair != ([], 0)]
        else:
            check_events(one)
            shown[one["name"]] = [(e["type"], frames[e["frame"]], e["at"]) for e in one["events"]]
    assert len(shown) == len(file["profiles"])
    return shown


def check_events(one):
    """Events ascend, and each end closes the innermost open frame, as speedscope requires."""
    stack, last = [], one["startValue"]
    for event in one["events"]:
        assert event["at"] >= last
        last = event["at"]
        if event["type"] == "O":
            stack.append(event["frame"])
        else:
            assert stack.pop() == event["frame"]
    assert not stack
    assert last <= one["endValue"]


def test_stacks_lead_from_the_statement_to_the_kernel(written):
    some = profile(
        ops=[line(1, 3, 100, 900), op(2, "f", 150, 800, 1)],
        activities=[
            kernel(200, 300, 2, name="gemm"),
            activity("memcpy", 350, 400, 1),
            kernel(400, 410),
            activity("synchronization", 100, 900, 1, thread_id=1),
            kernel(250, 280, 2, name="gemm", stream_id=8),
        ],
        api_calls=[call(160, 170)],
        info={"devices": [{"device_id": 0, "name": "H200", "kind": "gpu"}]},
    )
    file = written(some)
    assert named(file) == {
        "GPU 0, stream 7": [
            ([], 100), (["line 3", "f", "gemm"], 100), ([], 50), (["line 3", "memcpy"], 50),
            (["kernel"], 10),
        ],
        "GPU 0, stream 8": [([], 150), (["line 3", "f", "gemm"], 30)],
        "thread 1": [
            ("O", "line 3", 0), ("O", "f", 50), ("O", "cuLaunchKernel", 60),
            ("C", "cuLaunchKernel", 70), ("C", "f", 700), ("C", "line 3", 800),
        ],
    }  # fmt: skip
    assert file["profiles"][file["activeProfileIndex"]]["name"] == "GPU 0, stream 7"
    assert {"name": "line 3", "file": "In[1]", "line": 3} in file["shared"]["frames"]


def test_kernels_of_a_replay_are_below_the_op_that_captured_them(written):
    some = profile(
        ops=[op(1, "attention", 0, 10, status="earlier"), op(2, "replay", 20, 90)],
        activities=[kernel(30, 40, 2, capture_op_id=1)],
    )
    assert named(written(some))["device 0, stream 7"] == [
        ([], 10),
        (["replay", "attention", "kernel"], 10),
    ]


def test_ops_that_do_not_nest_have_tracks_of_their_own(written):
    some = profile(
        ops=[
            op(1, "outer", 0, 100),
            op(2, "suspended", 10, 60, 1, suspended_ns=20),
            op(3, "merged", 20, 90, 1, count=50),
            op(4, "step", 30, 30, 1),
        ]
    )
    assert named(written(some)) == {
        "thread 1": [("O", "outer", 0), ("O", "step", 30), ("C", "step", 30), ("C", "outer", 100)],
        "thread 1, overlapping (2)": [("O", "suspended", 10), ("C", "suspended", 60)],
        "thread 1, overlapping (3)": [("O", "merged", 20), ("C", "merged", 90)],
    }


def test_device_time_by_statement_is_that_of_the_tables(written):
    made = synthetic_profile(activities=20_000, seed=3)
    shown = named(written(made))
    totals = {}
    for name, samples in shown.items():
        for stack, weight in samples if "stream" in name else ():
            if stack:
                totals[stack[-1]] = totals.get(stack[-1], 0) + weight
    work = made.activities.query("kind != 'synchronization'")
    expected = work.groupby("name", observed=True)["duration_ns"].sum()
    assert totals == expected.to_dict()


intervals = st.tuples(st.integers(-50, 50), st.integers(-20, 30))


@given(st.lists(intervals), st.lists(intervals), st.lists(intervals))
def test_any_times_make_a_valid_file(tmp_path_factory, ops, activities, calls):
    some = profile(
        ops=[op(i, f"op {i}", a, a + d) for i, (a, d) in enumerate(ops, 1)],
        activities=[kernel(a, a + d) for a, d in activities],
        api_calls=[call(a, a + d) for a, d in calls],
    )
    path = tmp_path_factory.mktemp("any") / "run.speedscope.json"
    to_speedscope(some, path)
    shown = named(json.loads(path.read_text()))
    begins = [
        e for name, events in shown.items() if "thread" in name for e in events if e[0] == "O"
    ]
    assert len(begins) == len(ops) + len(calls)
    weights = [w for name, samples in shown.items() if "stream" in name for s, w in samples if s]
    assert sum(weights) == sum(max(d, 0) for _, d in activities)


def test_batches_do_not_change_the_file(written, monkeypatch):
    whole = written(nested())
    monkeypatch.setattr(json_rows, "_MAX_ROWS", 2)
    assert written(nested()) == whole


def test_names_cannot_break_out_of_the_file(written):
    hostile = '"}],"x":[{"\\\n\u2028</script>'
    some = profile(
        [op(1, hostile, 0, 9)], [kernel(1, 2, 1, name=hostile)], [call(1, 2, name=hostile)]
    )
    shown = named(written(some))
    assert shown["device 0, stream 7"][-1][0] == [hostile, hostile]


def test_an_empty_profile_and_a_compressed_one(tmp_path, written):
    assert written(profile())["profiles"] == []
    path = tmp_path / "run.speedscope.json.gz"
    nested().to_speedscope(path)
    plain = tmp_path / "plain.speedscope.json"
    nested().to_speedscope(plain)
    packed = json.loads(gzip.decompress(path.read_bytes()))
    assert packed["profiles"] == json.loads(plain.read_text())["profiles"]
    assert np.all([len(one.get("samples", [])) != 1 for one in packed["profiles"]])


def test_traces_of_other_tools_are_converted(tmp_path):
    source = DATA / "traces" / "viztracer_1.1.1.json.gz"
    path = tmp_path / "run.speedscope.json"
    run = CliRunner().invoke(main, ["convert", str(source), str(path)])
    assert run.exit_code == 0, run.output
    shown = named(json.loads(path.read_text()))
    ops = epprof_nb.read_trace(source).ops
    assert sum(len(events) for events in shown.values()) == 2 * len(ops) > 0
