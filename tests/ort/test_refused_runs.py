"""Runs that ONNX Runtime refuses, and runs whose callback gets an error."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import epprof_nb
from tests.ort import models
from tests.ort.rows import nodes, runs

CALLS = {
    "dtype": (None, lambda x: x.astype(np.float64)),
    "rank": (None, lambda x: x[0]),
    "name": (["no output"], lambda x: x),
}


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("refused", CALLS)
def test_a_refused_run_ends_with_its_error(installed, x, tmp_path, refused, whole):
    options = installed.SessionOptions()
    if whole:
        options.enable_profiling = True
        options.profile_file_prefix = str(tmp_path / "whole")
    session = installed.InferenceSession(models.chain(), options)
    names, change = CALLS[refused]
    with epprof_nb.profile(ort_nodes="every") as prof:
        with pytest.raises(Exception, match="INVALID_ARGUMENT"):
            session.run(names, {"x": change(x)})
        with epprof_nb.op("after"):
            session.run(None, {"x": x})
    found, ops = runs(prof), prof.ops
    after = ops[ops["name"] == "after"].iloc[0]
    assert found["status"].tolist() == ["failed", "complete"]
    assert found["session"].nunique() == 1
    assert after.isna()["parent_op_id"]
    assert found["end_ns"].iloc[0] <= after["start_ns"]
    assert found["parent_op_id"].iloc[1] == after.name
    assert prof.by_run()["nodes"].tolist() == [0, 3]
    assert any(note.startswith("1 of 2 runs failed") for note in prof.info["notes"])


def test_refused_runs_leave_the_op_around_them_open(installed, x):
    session = installed.InferenceSession(models.chain())
    with epprof_nb.profile(ort_nodes="every") as prof, epprof_nb.op("around"):
        for _ in range(3):
            with pytest.raises(Exception, match="INVALID_ARGUMENT"):
                session.run(None, {"x": x[0]})
    assert runs(prof)["status"].tolist() == ["failed"] * 3
    around = prof.ops.index[prof.ops["name"] == "around"][0]
    assert runs(prof)["parent_op_id"].tolist() == [around] * 3


@pytest.mark.parametrize("by_name", [False, True])
def test_a_run_whose_callback_gets_an_error_failed(installed, x, by_name):
    session = installed.InferenceSession(models.failing())
    errors = []

    def run(index):
        done = threading.Event()

        def ended(results, user_data, error):
            errors.append((user_data, error))
            done.set()

        feed = {"x": x, "i": np.array([index], np.int64)}
        if by_name:
            session.run_async(None, feed, callback=ended, user_data=index)
        else:
            session.run_async(None, feed, ended, index)
        assert done.wait(60)

    with epprof_nb.profile(ort_nodes="every") as prof:
        for index in (0, 99, 0, 99, 0):
            run(index)
    assert [user_data for user_data, _ in errors] == [0, 99, 0, 99, 0]
    assert runs(prof)["status"].tolist() == ["complete", "failed"] * 2 + ["complete"]
    failed = nodes(prof)[nodes(prof)["status"] == "failed"]
    assert failed["name"].tolist() == ["gather"] * 2
