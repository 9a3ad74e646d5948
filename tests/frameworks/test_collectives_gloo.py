"""Collectives of gloo: recorded as ops, and matched across ranks."""

import pytest

from epprof_nb.analysis.ranks.collectives import collective_notes, collectives_table
from tests.helpers.rank_programs import run_ranks

pytest.importorskip("torch", reason="PyTorch is not installed")

CALLS = """
    group = dist.new_group([0, 1])
    values, parts = torch.ones(10), [torch.empty(10) for _ in range(world)]
    with epprof_nb.profile() as prof:
        dist.all_reduce(values)
        dist.all_reduce(values, group=group)
        dist.all_reduce(values, async_op=True).wait()
        dist.all_gather(parts, values)
        dist.broadcast(values, 0)
        dist.barrier()
        dist.send(values, 1) if rank == 0 else dist.recv(values, 0)
        dist.barrier()
    # PyTorch's methods are themselves again.
    dist.all_reduce(values, async_op=True).wait()
    with epprof_nb.profile(frameworks=[]):
        dist.barrier()
    save(prof)
    dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    return run_ranks(tmp_path_factory.mktemp("calls"), CALLS, 2)


def test_calls_have_kind_communicator_and_size(calls):
    frame = collectives_table(calls).to_frame()
    first = frame[frame["rank"] == 0]
    assert first["kind"].tolist() == [
        "all_reduce", "all_reduce", "all_reduce", "all_gather", "broadcast", "barrier", "send",
        "barrier",
    ]  # fmt: skip
    assert first["bytes"].tolist()[:5] == [40] * 5
    communicators = first["communicator"].tolist()
    assert communicators[1] != communicators[0]
    assert set(communicators[2:]) == {communicators[0]}
    assert collective_notes(calls) == []


def test_calls_that_wait_for_all_are_matched(calls):
    frame = collectives_table(calls).to_frame()
    is_shared = ~frame["kind"].isin(["send", "receive"])
    assert (frame["ranks"] == is_shared + 1).all()
    waits = frame[is_shared & (frame["kind"] != "broadcast")]
    assert waits["waited_ns"].notna().all()
    assert (waits.groupby("collective")["waited_ns"].min() == 0).all()
    assert frame[~is_shared | (frame["kind"] == "broadcast")]["waited_ns"].isna().all()
