"""Blocks of the arenas of CUDA devices in profiles, against the statistics of the arenas."""

from __future__ import annotations

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.analysis.base.index import index_of
from epprof_nb.analysis.memory.memory_peak import InUse
from epprof_nb.recording.memory.arena_blocks import ArenaLog
from epprof_nb.recording.memory.pool_totals import OWN_POOL
from tests.ort import models

DEVICE = 1


def in_use():
    return _native.ep_device_statistics(DEVICE)["in_use"]


def blocks_of(prof):
    blocks = prof.memory_blocks
    blocks = blocks[blocks["pool"] != "host device"]  # arrays of other tests in this process
    assert (blocks["pool"] == OWN_POOL).all()
    return blocks[blocks["device_id"] == DEVICE]


@pytest.fixture
def device(ep, fake_cuda):
    ep.provider(f"cuda:{DEVICE}")
    return fake_cuda


def allocate(nbytes):
    return _native.ep_device_allocate(DEVICE, nbytes)


def free(address):
    _native.ep_device_free(DEVICE, address)


@pytest.mark.usefixtures("device")
def test_blocks_have_their_ops_and_sums_are_those_of_the_arena():
    before = allocate(1000)
    with epprof_nb.profile(detail="memory", frameworks=()) as prof:
        held = in_use()
        with epprof_nb.op("first"):
            one, two = allocate(5000), allocate(1)
            most = in_use()
        with epprof_nb.op("second"):
            free(one)
            free(before)
        reserved = _native.ep_device_statistics(DEVICE)["reserved"]
        at_end = in_use()
    blocks = blocks_of(prof)
    names = prof.ops["name"].to_dict()
    by_address = blocks.set_index("address")
    found = by_address.loc[[one, two, before]]
    assert found["bytes"].tolist() == [5120, 256, 1024]
    assert found["requested_bytes"].tolist()[:2] == [5000, 1]
    assert found["op_id"].map(names).fillna("").tolist() == ["first", "first", ""]
    assert found["freed_op_id"].map(names).fillna("").tolist() == ["second", "", "second"]
    assert found["allocated_ns"].isna().tolist() == [False, False, True]
    begun = blocks[blocks["allocated_ns"].isna()]
    assert begun["bytes"].sum() == held
    assert blocks[blocks["freed_ns"].isna()]["bytes"].sum() == at_end
    assert index_of(prof).cached(InUse).peak_bytes >= most
    segments = prof.memory_segments
    assert segments[segments["device_id"] == DEVICE]["bytes"].sum() == reserved
    pools = prof.memory_pools().set_index(["pool", "device_id"]).loc[(OWN_POOL, DEVICE)]
    assert (pools["held_bytes"], pools["in_use_bytes"]) == (reserved, at_end)
    assert pools["free_bytes"] == reserved - at_end
    free(two)


@pytest.mark.usefixtures("installed")
def test_nodes_hold_what_they_allocate(ep, device):
    @ep.kernel("Relu", types="float32")
    def relu(ctx, x):
        ctx.xp.maximum(x, 0, out=ctx.out(x.shape, x.dtype))

    x = np.ones((40_000, 4), np.float32)
    made = ep.session(models.chain(), device=f"cuda:{DEVICE}")
    with epprof_nb.profile(detail="memory") as prof:
        for _ in range(2):
            made.run(None, {"x": x})
    blocks = blocks_of(prof)
    ran = blocks[blocks["allocated_ns"].notna() & (blocks["bytes"] == x.nbytes)]
    names = set(ran["op_id"].map(prof.ops["name"]))
    assert {"first", "second", "third"} <= names  # later runs get their memory as a whole
    assert ran["op_id"].notna().all()
    holders = prof.memory_at()
    assert holders[holders["name"] != "(before this profile)"]["bytes"].sum() >= x.nbytes


@pytest.mark.usefixtures("device")
def test_regions_that_go_back_to_the_driver_end():
    with epprof_nb.profile(detail="memory", frameworks=()) as prof:
        first = allocate(600 << 20)
        free(first)
        free(allocate(700 << 20))  # the device has 1 GB
    segments = prof.memory_segments
    released = segments[segments["bytes"] == 600 << 20].iloc[0]
    assert released["address"] == first
    assert 0 <= released["allocated_ns"] < released["freed_ns"]
    held = segments[segments["freed_ns"].isna() & (segments["device_id"] == DEVICE)]
    assert held["bytes"].sum() == _native.ep_device_statistics(DEVICE)["reserved"]


@pytest.mark.usefixtures("device")
def test_a_limit_is_told():
    log = ArenaLog()
    kept = allocate(10)
    log.start(2)
    for _ in range(5):
        free(allocate(10))
    memory = log.take()
    assert memory is not None
    assert memory.dropped == 8
    (note,) = log.notes()
    assert note.startswith("8 allocations and releases of kernels in Python were dropped")
    log.stop()
    assert log.notes() == []
    assert log.take() is None
    free(kept)
    assert _native.ep_memory_log_read()["action"] == b""


@pytest.mark.usefixtures("device")
def test_each_recording_begins_with_what_is_held():
    first = allocate(700)
    for _ in range(2):
        with epprof_nb.profile(detail="memory", frameworks=()) as prof:
            pass
        blocks = blocks_of(prof)
        assert blocks["bytes"].sum() == in_use()
        assert first in blocks["address"].tolist()
    free(first)
    with epprof_nb.profile(detail="memory", frameworks=()) as prof:
        pass
    assert first not in blocks_of(prof)["address"].tolist()


@pytest.mark.usefixtures("device")
def test_without_the_option_nothing_is_logged():
    with epprof_nb.profile(frameworks=()) as prof:
        free(allocate(10))
    assert len(prof.memory_blocks) == 0
