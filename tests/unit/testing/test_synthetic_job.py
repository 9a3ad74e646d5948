"""Synthetic jobs, generated in pieces."""

from __future__ import annotations

import numpy as np
import pytest

import epprof_nb
from epprof_nb.testing import synthetic_job


def test_a_job_has_all_activities_in_ranks_that_differ(tmp_path):
    job = synthetic_job(tmp_path / "job", activities=1_001, ranks=3, piece=100)
    assert job.is_complete
    assert [len(job[rank].activities) for rank in job] == [333, 334, 334]
    assert job.ranks["launched"].all()
    walls = {job.wall_ns(rank) for rank in job}
    assert len(walls) == 3
    assert job.end_ns == max(walls)


def test_pieces_are_one_profile(tmp_path):
    prof = synthetic_job(tmp_path, activities=500, ranks=1, piece=70)[0]
    ops, activities, calls = (prof.tables[n] for n in ("ops", "activities", "api_calls"))
    for table in (ops, activities, calls):
        assert (np.diff(table["start_ns"]) >= 0).all()
        assert table["end_ns"].max() <= prof.wall_ns
    assert len(np.unique(ops["op_id"])) == len(ops)
    assert set(ops["parent_op_id"]) <= {-1, *ops["op_id"]}
    assert set(activities["op_id"]) <= {-1, *ops["op_id"]}
    assert sorted(activities["correlation_id"]) == sorted(calls["correlation_id"])
    assert len(np.unique(calls["correlation_id"])) == 500
    assert prof.info["recorded"]["shown"]["kernel"] == (prof.activities["kind"] == "kernel").sum()


def test_the_same_arguments_give_the_same_job(tmp_path):
    one, same, other = (
        synthetic_job(tmp_path / name, activities=300, ranks=2, seed=seed).by_rank()
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert one.equals(same)
    assert not one.equals(other)
    assert len(epprof_nb.load(tmp_path / "a")) == 2


@pytest.mark.parametrize("wrong", [{"activities": 1}, {"ranks": 0}, {"piece": 0}])
def test_too_small_numbers_are_refused(tmp_path, wrong):
    with pytest.raises(ValueError, match="at least"):
        synthetic_job(tmp_path, **wrong)
