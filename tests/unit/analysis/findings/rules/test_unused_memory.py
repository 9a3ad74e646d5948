"""Findings on memory that is held and cannot be used."""

import pytest

from epprof_nb.data.schema import MEMORY_BLOCKS, MEMORY_SEGMENTS
from tests.helpers import tiny
from tests.helpers.planted import MS, info

GB = 1_000_000_000


def piece(address, size, begin=None, end=None, pool="torch", **more):
    row = {"pool": pool, "device_id": 0, "address": address, "bytes": size}
    return row | {"allocated_ns": begin, "freed_ns": end} | more


def block(address, size, begin=None, end=None, **more):
    return piece(address, size, begin, end, requested_bytes=size, **more)


def with_memory(blocks, segments, *, total=20 * GB, used=10 * GB, calls=()):
    gpu = {"memory_total_bytes": total, "memory_used_bytes": used}
    more = {"detail": "memory", "gpu": {"after": {"gpus": [gpu]}}}
    # A device that idles between two kernels, so that there is something to save.
    ops = [tiny.line(1, 1, 0, 10 * MS), tiny.line(2, 2, 10 * MS, 20 * MS)]
    work = [tiny.kernel(0, MS, 1, thread_id=1), tiny.kernel(18 * MS, 19 * MS, 2, thread_id=1)]
    prof = tiny.profile(ops, work, calls, info=info(20 * MS) | more)
    prof.tables["memory_blocks"] = tiny.table(MEMORY_BLOCKS, blocks)
    prof.tables["memory_segments"] = tiny.table(MEMORY_SEGMENTS, segments)
    return prof


def of_kind(prof, kind):
    found = prof.insights()
    return list(found[found["kind"] == kind].itertuples())


# 8 GB in pieces of 1 GB, every other one in use; then 3 GB more are requested.
SEGMENTS = [piece(0, 8 * GB), piece(20 * GB, 3 * GB, 500)]
PIECES = [block(i * GB, GB) for i in range(0, 8, 2)]
ASKED = block(20 * GB, 3 * GB, 501)
LARGE = block(20 * GB, 9 * GB, 501)


def test_pieces_that_no_request_fits():
    prof = with_memory([*PIECES, ASKED], SEGMENTS)
    (row,) = of_kind(prof, "fragmentation")
    assert row.text == (
        "PyTorch held 4.00 GB that its largest request, 3.00 GB, could not use: the largest free "
        "piece had 1.00 GB."
    )
    assert row.gain_ns == 0
    assert "expandable_segments" in row.remedy
    assert prof.evidence(row.rank)["bytes"].tolist() == [8 * GB]


@pytest.mark.parametrize(
    "prof",
    [
        with_memory([*PIECES, ASKED], SEGMENTS, total=100 * GB),  # too little of the device
        with_memory([*PIECES, LARGE], [SEGMENTS[0], piece(20 * GB, 9 * GB, 500)]),  # as a whole
        with_memory([block(0, GB), ASKED], SEGMENTS),  # the piece is large enough
        with_memory([*PIECES, block(20 * GB, GB, 501)], SEGMENTS),  # every request fits
        with_memory(PIECES, SEGMENTS[:1]),  # nothing was allocated
    ],
)  # fmt: skip
def test_no_fragmentation(prof):
    assert not of_kind(prof, "fragmentation")


def test_a_refused_allocation_shows_little_fragmentation_and_comes_first():
    refused = tiny.call(480, 490, name="cudaMalloc", return_value=2)
    prof = with_memory([*PIECES, ASKED], SEGMENTS, total=100 * GB, calls=[refused])
    (row,) = of_kind(prof, "fragmentation")
    assert "the driver refused 1 allocation." in row.text
    assert row.rank == 1


def test_order_follows_from_how_full_the_device_is_and_what_was_asked():
    memory = [*PIECES, ASKED], SEGMENTS
    prof = with_memory(*memory)
    prof.info["detail"] = "all"
    *rest, last = prof.insights()["kind"]
    assert rest
    assert last == "fragmentation"
    full = with_memory(*memory, used=19 * GB)
    full.info["detail"] = "all"
    asked = with_memory(*memory)
    asked.info["detail"] = "memory"
    for prof in (full, asked):
        assert prof.insights()["kind"].tolist() == [last, *rest]


def test_caches_of_two_libraries():
    segments = [piece(0, 8 * GB), piece(20 * GB, 3 * GB, pool="CuPy")]
    blocks = [block(0, 2 * GB), block(20 * GB, 3 * GB, pool="CuPy")]
    prof = with_memory(blocks, segments)
    (row,) = of_kind(prof, "unused cache")
    assert row.text == (
        "PyTorch caches 6.00 GB, 30 % of the device, that it does not use at the end and that CuPy "
        "(3.00 GB) cannot use."
    )
    assert "torch.cuda.empty_cache()" in row.remedy
    assert prof.evidence(row.rank)["bytes"].tolist() == [8 * GB]
    alone = with_memory(blocks[:1], segments[:1])
    small = with_memory(blocks, segments, total=200 * GB)
    graphs = [piece(0, 8 * GB, pool="torch graph 1"), segments[1]]
    for other in (alone, small, with_memory(blocks[1:], graphs)):
        assert not of_kind(other, "unused cache")
