"""The finding on eager nodes that a graph would help."""

from __future__ import annotations

import itertools
import time

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import epprof_nb
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings.rules.launches.repeated_captures import wasted_captures
from epprof_nb.analysis.findings.rules.onnx import missing_graph as graph_finding
from epprof_nb.analysis.findings.rules.onnx.missing_graph import MIN_NODES, graph_opportunity
from epprof_nb.core.python_kernel_log import KERNELS
from tests.ep.sessions import CPU, model
from tests.ort.rows import nodes

pytestmark = pytest.mark.usefixtures("installed", "slow_abs")


def pieces(count, left_out=()):
    """A model of nodes in a row; those left out stay on the CPU."""
    made = [
        helper.make_node(
            "Relu" if i in left_out else "Abs", [f"v{i}"], [f"v{i + 1}"], name=f"node_{i}"
        )
        for i in range(count)
    ]
    feeds = {"v0": np.ones((2, 2), np.float32)}
    return model(made, feeds, {f"v{count}": np.float32}), feeds


@pytest.fixture
def slow_abs(ep, monkeypatch):
    """An Abs whose node takes 1 ms, of which its kernel runs for 0.1 ms at most."""
    add = KERNELS.add

    @ep.kernel("Abs")
    def absolute(ctx, x):
        np.abs(x, out=ctx.out(x.shape, x.dtype))
        time.sleep(1e-3)

    def shortened(name, start_ns, end_ns, **more):
        add(name, start_ns, min(start_ns + 100_000, end_ns), **more)

    monkeypatch.setattr(KERNELS, "add", shortened)
    # Between two runs, the system may suspend the thread for longer than all kernels wait.
    monkeypatch.setattr(graph_finding, "GAP_SHARE", 0)


def profiled(ep, count, times, *, left_out=(), graphs=False):
    serialized, feeds = pieces(count, left_out)
    made = ep.session(serialized, only=["Abs"], enable_cuda_graph=graphs)
    made.run(None, feeds)
    with epprof_nb.profile() as prof:
        for _ in range(times):
            made.run(None, feeds)
    return prof


def finding(prof):
    return graph_opportunity(ProfileIndex(prof))


def test_the_stretch_and_its_saving_are_named(ep, monkeypatch):
    prof = profiled(ep, 6, 3)
    (found,) = finding(prof)
    assert "6 nodes from `node_0` to `node_5`" in found.text
    assert "in 3 runs" in found.text
    assert "enable_cuda_graph" in found.text
    kernels = prof.activities.assign(run=prof.ops.loc[prof.activities["op_id"], "run_id"].array)
    runs = kernels.groupby("run").agg(
        start=("start_ns", "min"), end=("end_ns", "max"), busy=("duration_ns", "sum")
    )
    gaps = runs["end"] - runs["start"] - runs["busy"]
    assert found.gain_ns <= gaps.sum()
    assert found.gain_ns > 0
    longest = runs.loc[gaps.idxmax()]
    assert (found.start_ns, found.end_ns) == (longest["start"], longest["end"])
    session = prof.ops["session"].dropna().iloc[0]
    savings = []
    for stretch in (1.0, 2.0):
        prof.info["onnxruntime_stretch"] = [{"session": session, "stretch": stretch}]
        savings.append(finding(prof)[0].gain_ns)
    assert savings[0] == pytest.approx(2 * savings[1], abs=2)
    share = gaps.sum() / prof.wall_ns
    for least, findings in ((0.99 * share, 1), (1.01 * share, 0)):
        monkeypatch.setattr(graph_finding, "GAP_SHARE", least)
        assert len(finding(prof)) == findings


def test_a_node_on_the_cpu_divides_the_stretch(ep):
    prof = profiled(ep, 12, 2, left_out=[2])
    assert set(nodes(prof)["provider"]) > {CPU}
    (found,) = finding(prof)
    assert "9 nodes from `node_3` to `node_11`" in found.text


@pytest.mark.parametrize(
    ("count", "times", "graphs"), [(6, 1, False), (MIN_NODES - 1, 3, False), (6, 3, True)],
    ids=["one run", "few nodes", "replayed"],
)  # fmt: skip
def test_nothing_is_said_where_a_graph_would_not_help(ep, count, times, graphs):
    assert finding(profiled(ep, count, times, graphs=graphs)) == []


def test_a_profile_without_sessions_has_none(ep):
    with epprof_nb.profile() as prof:
        pass
    assert finding(prof) == []
    assert list(wasted_captures(ProfileIndex(prof))) == []


def decoded(ep, lengths, *, ids=(0,)):
    """A profile of runs with inputs of these lengths in a session that captures graphs."""
    serialized, _ = pieces(6)
    made = ep.session(serialized, enable_cuda_graph=True)
    with epprof_nb.profile() as prof:
        for length, gpu_graph_id in itertools.product(lengths, ids):
            options = onnxruntime.RunOptions()
            options.add_run_config_entry("gpu_graph_id", str(gpu_graph_id))
            made.run(None, {"v0": np.ones((2, length), np.float32)}, options)
    return prof


def test_a_graph_per_run_is_named_with_its_remedy(ep):
    prof = decoded(ep, range(1, 7))
    (found,) = wasted_captures(ProfileIndex(prof))
    assert "(session " in found.text
    assert "captured 6 graphs, and no later run replayed one. The input shapes change" in found.text
    assert "past keys and values" in found.remedy
    by_run = prof.by_run()
    # Each run makes three passes over its nodes, of which one is needed.
    assert abs(found.gain_ns - by_run["host_ns"].sum() * 2 // 3) < len(by_run)
    insights = prof.insights()
    (row,) = insights.index[insights["kind"] == "graph capture"]
    assert prof.evidence(insights.loc[row])["start_ns"].tolist() == by_run["start_ns"].tolist()
    assert finding(prof) == []


def test_captures_for_other_reasons_than_shapes_are_told_apart(ep):
    (found,) = wasted_captures(ProfileIndex(decoded(ep, [2], ids=range(6))))
    assert "The input shapes change" not in found.text
    assert "A graph is for runs of one thread" in found.text


@pytest.mark.parametrize("lengths", [[1, 2, 3, 4], [1, 2, 3, 4, 5] * 2], ids=["few", "replayed"])
def test_nothing_is_said_of_graphs_that_are_few_or_replayed(ep, lengths):
    assert list(wasted_captures(ProfileIndex(decoded(ep, lengths)))) == []
