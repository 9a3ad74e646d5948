"""Sizes of the tensors of nodes, the memory of their allocators, and their threads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import epprof_nb
from epprof_nb.data.ort_arguments import NODE_MEMORY, NODE_SIZES
from epprof_nb.recording.onnxruntime.node_usage import COLUMNS
from tests.ort import models
from tests.ort.rows import nodes, runs

ROWS = (2, 20_000, 200)


@pytest.fixture
def recorded(installed, tmp_path):
    """The nodes of some runs, and ONNX Runtime's own events of them."""
    options = installed.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "whole")
    session = installed.InferenceSession(models.chain(), options)
    with epprof_nb.profile() as prof:
        for rows in ROWS:
            session.run(None, {"x": np.ones((rows, 4), np.float32)})
    events = json.loads(Path(session.end_profiling()).read_text())
    args = [e["args"] for e in events if e["name"].endswith("_kernel_time")]
    assert len(args) == 3 * len(ROWS)
    return prof, args


def test_each_node_has_the_numbers_that_onnxruntime_reports(installed, recorded):
    prof, args = recorded
    found = nodes(prof)
    for column, key in (NODE_SIZES | NODE_MEMORY).items():
        values = found[column].tolist()
        if key in args[0]:
            assert values == [int(of_node[key]) for of_node in args]
        else:
            assert found[column].isna().all()
    assert found["output_bytes"].tolist() == [16 * rows for rows in ROWS for _ in range(3)]
    release = tuple(map(int, installed.__version__.split(".")[:2]))
    assert found["in_use_bytes"].notna().all() == (release >= (1, 28))
    for column in (*NODE_SIZES, *COLUMNS):
        assert runs(prof)[column].isna().all()


def test_by_node_has_totals_and_the_most_memory_in_use(recorded):
    prof, args = recorded
    table = prof.by_node().set_index("name")
    assert table.at["first", "output_bytes"] == 16 * sum(ROWS)
    assert table.at["second", "activation_bytes"] == 16 * sum(ROWS)
    assert (table["parameter_bytes"] == 0).all()  # the weight is packed into the kernel
    by_type = prof.by_op_type().set_index("op_type")
    assert by_type.at["Relu", "output_bytes"] == 16 * sum(ROWS)
    of_first = args[::3]
    if "mem_arena_held" in of_first[0]:
        most = max(int(of_node["mem_bytes_in_use"]) for of_node in of_first)
        growth = sum(int(of_node["mem_arena_held_delta"]) for of_node in of_first)
        assert table.at["first", "in_use_bytes"] == most
        assert table.at["first", "arena_held_delta_bytes"] == growth > 0
    else:
        assert table[["in_use_bytes", "arena_held_delta_bytes"]].isna().all(axis=None)


def test_nodes_that_were_not_recorded_have_no_memory(installed, x):
    session = installed.InferenceSession(models.chain())
    with epprof_nb.profile(ort_nodes="off") as prof:
        session.run(None, {"x": x})
    assert len(runs(prof)) == 1
    assert all(prof.tables["ops"].is_absent(name) for name in (*NODE_SIZES, *COLUMNS))


@pytest.mark.parametrize("threads", [1, 16])
def test_times_of_the_thread_pool_are_those_that_onnxruntime_reports(installed, tmp_path, threads):
    options = installed.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "whole")
    session = installed.InferenceSession(models.chain(), options)
    with epprof_nb.profile() as prof:
        # Of many nodes, some withdraw work that no thread has begun, and wait for that.
        for _ in range(3 if threads == 1 else 100):
            session.run(None, {"x": np.ones((50_000, 4), np.float32)})
    events = json.loads(Path(session.end_profiling()).read_text())
    stats = [
        e["args"]["thread_scheduling_stats"] for e in events if e["name"].endswith("_kernel_time")
    ]
    found = nodes(prof)
    table = prof.by_node()
    if threads == 1:
        assert found["pool_start_ns"].isna().all()
        assert table["pool_wait_ns"].isna().all()
        return
    mains = [of_node["main_thread"] for of_node in stats]
    starts = [1000 * main["Distribution"] for main in mains]
    waits = [1000 * (main["Wait"] + main["WaitRevoke"]) for main in mains]
    assert sum(starts) + sum(waits) > 0
    # Times of the first node of each run may contain those of earlier runs.
    first = np.arange(len(found)) % 3 == 0
    for column, values in (("pool_start_ns", starts), ("pool_wait_ns", waits)):
        assert found[column].isna().tolist() == first.tolist()
        assert found[column][~first].tolist() == np.array(values)[~first].tolist()
    starts, waits = (np.array(values)[~first].tolist() for values in (starts, waits))
    assert table["pool_start_ns"].sum() == sum(starts)
    assert table["pool_wait_ns"].sum() == sum(waits)


def test_times_of_the_thread_pool_are_not_those_of_earlier_runs(installed):
    options = installed.SessionOptions()
    options.intra_op_num_threads = 2
    session = installed.InferenceSession(models.chain(), options)
    x = np.ones((50_000, 4), np.float32)
    with epprof_nb.profile():
        session.run(None, {"x": x})
    for _ in range(50):
        session.run(None, {"x": x})
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x})
    found = nodes(prof)
    assert found["pool_wait_ns"].isna().tolist() == [True, False, False]
    times = (found["pool_start_ns"] + found["pool_wait_ns"])[1:]
    assert (times <= found["duration_ns"][1:] + 3000).all()
