"""Comparison of CUDA graph replays: kernels belong to the ops that captured them."""

import numpy as np
import pytest

from epprof_nb import compare
from epprof_nb.data.schema import MISSING
from tests.helpers.tiny import kernel, line, op, profile

REPEATS = 12


def replays(attention_ns, mlp_ns=(400, 400), *, status="earlier", cell="In[2]", seed=0):
    """A graph of three kernels, captured by two ranges, that is replayed in each repeat."""
    rng = np.random.default_rng(seed)
    ops = [
        op(1, "In[1]", -900, -100, op_type="cell", category="cell", status=status),
        line(2, 3, -800, -200, 1, "In[1]", status=status) | {"name": "with graph(g):"},
        op(3, "attention", -700, -500, 2, status=status),
        op(4, "MatMul_3", -450, -300, 2, op_type="MatMul", category="node", status=status,
           provider="CUDA"),
        op(5, cell, 0, 10**7, op_type="cell", category="cell"),
    ]  # fmt: skip
    work, bounds = [], []
    now = 100
    for repeat in range(REPEATS):
        number = 10 + repeat
        begin = now
        ops.append(line(number, 1, now, now + 50, 5, cell, repeat=repeat) | {"name": "g.replay()"})
        launch = {"correlation_id": 100 + repeat, "graph_id": 7, "repeat": repeat}
        parts = [("softmax", attention_ns, 3), *(("gemm", ns, 4) for ns in mlp_ns)]
        for node, (name, time, capture) in enumerate(parts):
            took = round(time * np.exp(0.002 * rng.standard_normal()))
            more = launch | {"capture_op_id": capture, "graph_node_id": node}
            work.append(kernel(now, now + took, number, name=name, **more))
            now += took
        bounds.append([begin, begin + 50])
    devices = [{"device_id": 0, "name": "GPU X", "kind": "gpu"}]
    return profile(ops, work, info={"repeats": bounds, "wall_ns": now, "devices": devices})


@pytest.mark.parametrize("status", ["earlier", "complete"])
def test_the_op_that_captured_the_slower_kernel_is_found(status):
    result = compare(replays(300, status=status), replays(360, seed=1, status=status, cell="In[9]"))
    ops = result.ops.set_index("path")
    inside = "g.replay() / with graph(g): / "
    assert ops.loc[f"{inside}attention", "verdict"] == "slower"
    assert ops.loc[f"{inside}attention", "change"] == pytest.approx(0.2, abs=0.01)
    node = ops.loc[f"{inside}MatMul_3"]
    assert node["verdict"] == "no difference found"
    assert (node["measure"], node["count_before"], node["provider"]) == ("device", 1, "CUDA")
    # The replay contains all of it, and so does the statement that captured.
    for path in ("g.replay()", "g.replay() / with graph(g):"):
        assert ops.loc[path, "before_ns"] == pytest.approx(1100, rel=0.01)
    kernels = result.kernels.set_index("path")["name"]
    assert kernels.to_dict() == {f"{inside}attention": "softmax", f"{inside}MatMul_3": "gemm"}
    assert result.nodes["path"].tolist() == [f"{inside}MatMul_3"]
    assert "Changed: `g.replay() / with graph(g): / attention` +" in result.reason


def test_an_op_of_an_earlier_profile_did_not_run_in_this_one():
    ops = [
        op(1, "In[1]", 0, 1000, op_type="cell"),
        op(2, "replay", 10, 500, 1),
        op(9, "capture", -500, -100, status="earlier"),
    ]
    work = [kernel(20, 80, 2, capture_op_id=9, graph_node_id=3, graph_id=1)]
    prof = profile(ops, work, info={"wall_ns": 1000})
    rows = compare(prof, prof).ops
    assert rows["path"].tolist() == ["replay", "replay / capture"]
    assert rows["host_before_ns"].tolist() == [490, 0]


def test_an_op_that_captures_nothing_any_more_is_removed():
    old, new = replays(300), replays(300, mlp_ns=(), seed=1)
    ops = compare(old, new, allow=["counts"]).ops.set_index("path")
    assert ops.loc["g.replay() / with graph(g): / MatMul_3", "verdict"] == "removed"


def test_kernels_whose_capture_is_unknown_belong_to_the_replay():
    sides = []
    for seed in range(2):
        prof = replays(300, seed=seed)
        activities = prof.tables["activities"]
        missing = np.full(len(activities), MISSING)
        prof.tables["activities"] = activities.replace(capture_op_id=missing)
        sides.append(prof)
    result = compare(*sides)
    assert set(result.kernels["path"]) == {"g.replay()"}
    assert result.ops["path"].tolist() == ["g.replay()"]


def test_comparisons_of_replays_mirror_each_other():
    old, new = replays(300), replays(330, seed=1)
    forth, back = (
        frame.set_index("path") for frame in (compare(old, new).ops, compare(new, old).ops)
    )
    np.testing.assert_allclose(
        1 + forth["change_low"], 1 / (1 + back.loc[forth.index, "change_high"])
    )
    assert set(compare(old, old).ops["verdict"]) == {"no difference found"}
