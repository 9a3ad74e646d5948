"""The sentence on the straggler that the last rank of a launch prints."""

import os

from epprof_nb.jobs.last_rank import sentence_of_last_rank
from tests.helpers.jobs import add_part
from tests.unit.jobs.test_collectives import gloo_rank


def rank_in(monkeypatch, rank, world=3):
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("WORLD_SIZE", str(world))


def add(folder, rank, slow_ms=0, **fields):
    profile = gloo_rank(slow_ms=slow_ms)
    more = {"pid": 2000 + rank, "followed": "run", "world_size": 3, "begin_ns": 10**9, **fields}
    part = add_part(folder, rank, profile=profile, **more)
    os.utime(part / "manifest.json")  # a tick of the file system later


def test_the_last_rank_names_the_straggler(tmp_path, monkeypatch):
    rank_in(monkeypatch, 2)
    add(tmp_path, 0)
    add(tmp_path, 1, slow_ms=5)
    assert sentence_of_last_rank(tmp_path) is None
    add(tmp_path, 1, pid=3000, followed="fork", parent_pid=2001)  # not the rank that is missing
    assert sentence_of_last_rank(tmp_path) is None
    add(tmp_path, 2)
    assert "Rank 1" in sentence_of_last_rank(tmp_path)
    rank_in(monkeypatch, 0)
    assert sentence_of_last_rank(tmp_path) is None


def test_ranks_alike_have_nothing_to_say(tmp_path, monkeypatch):
    rank_in(monkeypatch, 2)
    for rank in range(3):
        add(tmp_path, rank)
    assert sentence_of_last_rank(tmp_path) is None
