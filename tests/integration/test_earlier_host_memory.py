"""Arrays of the host device from before a profile, in its tables of memory."""

from __future__ import annotations

import gc

import pytest

import epprof_nb
from epprof_nb import host

BEFORE = "(before this profile)"


@pytest.fixture(autouse=True)
def others():
    """Bytes that other tests have left, without garbage that a test would see released."""
    gc.collect()
    return host.memory_info().used


def earlier_bytes(prof, at="end"):
    holders = prof.memory_at(at)
    return int(holders["bytes"][holders["name"] == BEFORE].sum())


def test_the_end_is_that_of_the_device_after_dropped_records(others):
    older, kept = host.empty(2000), []
    with epprof_nb.profile(detail="memory", max_records=4) as prof:
        kept.append(host.empty(500))
        temporary = [host.empty(1000 + i) for i in range(3)]
        kept.append(host.empty(300))  # its record is dropped, as all that follow
        del temporary
    used = host.memory_info().used
    assert used == others + older.nbytes + 3200
    assert prof.memory_at("end")["bytes"].sum() == used
    assert prof.memory_at(0)["bytes"].sum() == others + older.nbytes
    assert prof.memory_blocks["freed_ns"].notna().sum() == 3
    (note,) = (note for note in prof.info["notes"] if "memory in use is only known" in note)
    assert "profile(max_records=" in note


def test_the_tables_add_up_with_the_device(others):
    kept, released = host.empty(2000), host.empty(1000)
    with epprof_nb.profile(detail="memory") as prof:
        with epprof_nb.op("load"):
            new = host.empty(500)
        del released
        host.empty(100)
    used = host.memory_info().used
    assert used == others + kept.nbytes + new.nbytes
    assert prof.memory_at("end")["bytes"].sum() == used
    assert prof.memory_at(0)["bytes"].sum() == others + 12_000
    assert prof.memory_at()["bytes"].sum() == others + 14_000
    assert earlier_bytes(prof) == others + kept.nbytes
    pools = prof.memory_pools().set_index("pool").loc["host device"]
    assert (pools["held_bytes"], pools["in_use_bytes"]) == (used, used)
    assert (pools["peak_bytes"], pools["free_bytes"]) == (others + 14_000, 0)
    # No line gets memory whose allocation was not recorded.
    assert prof.by_op(memory=True)["self_allocated_bytes"].sum() == 2400


def test_profiles_in_profiles_and_after_another(others):
    first = host.empty(1000)
    with epprof_nb.profile(detail="memory") as outer:
        second = host.empty(200)
        with epprof_nb.profile(detail="memory") as inner:
            third = host.empty(30)
    with epprof_nb.profile(detail="memory") as later:
        pass
    sizes = [array.nbytes for array in (first, second, third)]
    assert earlier_bytes(outer) == others + sizes[0]
    assert earlier_bytes(inner) == others + sum(sizes[:2])
    assert earlier_bytes(later) == others + sum(sizes)


def test_after_an_error_the_holders_are_known(others):
    limit = host.memory_info().limit
    kept = [host.empty(1000) for _ in range(3)]
    host.set_memory_limit(others + 14_000)
    try:
        with pytest.raises(MemoryError), epprof_nb.profile(detail="memory") as prof:
            host.empty(1000)
    finally:
        host.set_memory_limit(limit)
    assert prof.memory_at()["bytes"].sum() == others + sum(array.nbytes for array in kept)


def test_memory_that_is_recorded_in_a_part_only_adds_nothing():
    kept = host.empty(1000)
    with epprof_nb.profile() as outer:
        later = host.empty(100)
        with epprof_nb.profile(detail="memory") as inner:
            pass
    assert earlier_bytes(inner) >= kept.nbytes + later.nbytes
    assert earlier_bytes(outer) == 0


def test_without_memory_in_the_profile_there_is_none():
    kept = host.empty(1000)
    with epprof_nb.profile() as prof:
        host.launch(lambda array: None, kept)
    assert prof.memory_blocks.empty
    assert prof.memory_pools().empty
