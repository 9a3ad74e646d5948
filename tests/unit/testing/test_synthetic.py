"""Synthetic profiles: as consistent as recorded ones."""

import json

import numpy as np
import pandas as pd
import pytest

from epprof_nb.data.schema import MISSING
from epprof_nb.testing import synthetic_profile


@pytest.fixture(scope="module")
def made_up():
    return synthetic_profile(30_000, seed=5, streams=3, threads=3)


@pytest.mark.parametrize("count", [0, 1, 5, 117, 118, 2_500])
def test_there_are_exactly_as_many_activities_and_calls_as_asked(count):
    some = synthetic_profile(count)
    assert len(some.tables["activities"]) == len(some.tables["api_calls"]) == count
    recorded = some.info["recorded"]
    assert sum(recorded["launched"].values()) == sum(recorded["shown"].values()) == count
    assert recorded["lost"] == {}
    assert sum(some.info["attribution"].values()) == count


@pytest.mark.parametrize("streams", [1, 2, 6])
def test_activities_of_a_stream_never_overlap(streams):
    shown = synthetic_profile(10_000, streams=streams).activities
    shown = shown[shown["stream_id"].notna()].sort_values(["stream_id", "start_ns"])
    assert shown["stream_id"].nunique() == streams
    for _, stream in shown.groupby("stream_id"):
        assert (stream["start_ns"].to_numpy()[1:] >= stream["end_ns"].to_numpy()[:-1]).all()


def test_times_are_consistent(made_up):
    for name in ("ops", "activities", "api_calls"):
        table = made_up.tables[name]
        assert (table["duration_ns"] == table["end_ns"] - table["start_ns"]).all()
        assert (table["duration_ns"] > 0).all()
        assert table["start_ns"].min() >= 0
        assert table["end_ns"].max() <= made_up.wall_ns


def test_ops_lie_inside_their_parents_and_beside_their_siblings(made_up):
    ops = made_up.ops
    inner = ops[ops["parent_op_id"].notna()]
    outer = ops.loc[inner["parent_op_id"].astype("int64")]
    assert (inner["start_ns"].to_numpy() >= outer["start_ns"].to_numpy()).all()
    assert (inner["end_ns"].to_numpy() <= outer["end_ns"].to_numpy()).all()
    for _, siblings in inner.groupby("parent_op_id"):
        assert (siblings["start_ns"].to_numpy()[1:] >= siblings["end_ns"].to_numpy()[:-1]).all()
    assert ops.index.is_unique


def test_calls_come_before_their_activities_and_inside_their_op(made_up):
    calls = made_up.api_calls.set_index("correlation_id")
    activities = made_up.activities.set_index("correlation_id")
    assert calls.index.equals(activities.index)
    assert (activities["start_ns"] >= calls["start_ns"]).all()
    calls = calls[calls["op_id"].notna()]
    ops = made_up.ops.loc[calls["op_id"].astype("int64")]
    assert (calls["start_ns"].to_numpy() >= ops["start_ns"].to_numpy()).all()
    assert (calls["end_ns"].to_numpy() <= ops["end_ns"].to_numpy()).all()


def test_attribution_says_how_the_op_was_found(made_up):
    shown = made_up.activities
    missing = shown["op_id"].isna()
    assert (missing == (shown["attribution"] == "none")).all()
    assert 0 < missing.sum() < len(shown) / 100
    workers = shown[shown["attribution"] == "cell"]
    assert set(made_up.ops.loc[workers["op_id"].astype("int64"), "line"]) == {10}
    main = made_up.ops["thread_id"].unique()
    assert not set(workers["thread_id"]) & set(main)
    assert workers["thread_id"].nunique() == 2


def test_one_thread_launches_everything_where_there_is_one():
    shown = synthetic_profile(1_000, threads=1).activities
    assert set(shown["attribution"]) == {"stack"}
    assert len(set(shown["thread_id"])) == 1


def test_every_kind_of_activity_has_its_details(made_up):
    shown = made_up.activities
    kinds = {"kernel", "memcpy", "memset", "synchronization"}
    assert set(shown["kind"]) == kinds
    kernels = shown[shown["kind"] == "kernel"]
    assert kernels[["grid_x", "grid_y", "grid_z", "block_x"]].notna().all(axis=None)
    assert kernels["bytes"].isna().all()
    copies = shown[shown["kind"] == "memcpy"]
    assert set(copies["copy_kind"]) == {"HtoD", "DtoH"}
    assert (copies["name"].astype(str) == "memcpy " + copies["copy_kind"].astype(str)).all()
    assert (copies["bytes"] > 0).all()
    assert copies["grid_x"].isna().all()


def test_statements_quote_the_source(made_up):
    source = made_up.sources["In[3]"].splitlines()
    statements = made_up.ops[made_up.ops["op_type"] == "line"]
    quoted = [source[line - 1].strip() for line in statements["line"]]
    assert statements["name"].tolist() == quoted
    assert set(statements["line"]) == set(range(1, len(source) + 1))


def test_the_seed_decides_the_profile():
    first, same, other = (synthetic_profile(500, seed=seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first.activities, same.activities)
    assert not first.activities["start_ns"].equals(other.activities["start_ns"])


def test_info_is_json_with_what_a_session_says(made_up):
    assert json.loads(json.dumps(made_up.info)) == made_up.info
    assert {
        "format", "wall_ns", "cell", "devices", "detail", "recorded", "attribution",
        "profiling_cost", "notes", "error", "versions",
    } == set(made_up.info)  # fmt: skip


@pytest.mark.parametrize("arguments", [{"activities": -1}, {"streams": 0}, {"threads": 0}])
def test_numbers_that_are_too_small_are_refused(arguments):
    with pytest.raises(ValueError, match="at least"):
        synthetic_profile(**arguments)


def test_a_million_activities_can_be_made():
    large = synthetic_profile(1_000_000)
    assert len(large.tables["activities"]) == 1_000_000
    assert np.count_nonzero(large.tables["activities"]["op_id"] == MISSING) > 0
