"""Durations of nodes, compared with the JSON profile of ONNX Runtime for the same runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import epprof_nb
from tests.ort import models
from tests.ort.rows import nested_in_time, nodes

RUNS = 50


def test_nodes_are_as_long_as_onnx_runtime_says(installed, x, tmp_path):
    options = installed.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "whole")
    session = installed.InferenceSession(models.chain([f"n{i}" for i in range(12)]), options)
    with epprof_nb.profile() as prof:
        for _ in range(RUNS):
            session.run(None, {"x": x})
    events = json.loads(Path(session.end_profiling()).read_text())
    theirs = [e for e in events if e["cat"] == "Node" and e["name"].endswith("_kernel_time")]
    ours = nodes(prof)
    assert [e["name"].removesuffix("_kernel_time") for e in theirs] == ours["name"].tolist()
    difference = ours["duration_ns"].to_numpy() - [e["dur"] * 1000 for e in theirs]
    # ONNX Runtime's clock may be set during a node.
    assert np.median(np.abs(difference)) == 0
    assert (difference <= 1000).all()


def test_nodes_in_a_loop_do_not_overlap_or_outlast_it(installed, x):
    session = installed.InferenceSession(models.looping())
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x, "times": np.array(4000)})
    found = nodes(prof)
    inside = found[found["name"] != "loop"]
    assert len(inside) >= 4000
    starts, ends = inside["start_ns"].to_numpy(), inside["end_ns"].to_numpy()
    assert (starts[1:] >= ends[:-1]).all()
    outer = found[found["name"] == "loop"].iloc[0]
    assert outer["start_ns"] <= starts.min()
    assert ends.max() <= outer["end_ns"]
    assert nested_in_time(prof)
