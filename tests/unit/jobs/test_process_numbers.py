"""Clocks of processes, and how many parts a job keeps in memory."""

import gc
import weakref

import epprof_nb
from epprof_nb.jobs.clocks import placements
from tests.helpers.jobs import add_part, manifest

EPOCH = 10**18


def clock(boot_id, namespace="time:[1]"):
    return {"boot_id": boot_id, "time_namespace": namespace, "error_ns": 0}


def test_another_time_namespace_is_another_clock_of_the_same_host():
    # The third process reads a clock that is 5 s behind, but began when the second one did.
    found = placements(
        {
            0: manifest(0, begin_ns=10**10, info={"started_at_epoch_ns": EPOCH}),
            1: manifest(1, begin_ns=10**10 + 700, info={"started_at_epoch_ns": EPOCH + 701}),
            2: manifest(
                2,
                begin_ns=5 * 10**9,
                clock=clock("b1", "time:[2]"),
                info={"started_at_epoch_ns": EPOCH + 700},
            ),
        }
    )
    assert [found[n].offset_ns for n in range(3)] == [0, 700, 700]
    assert [found[n].error_ns for n in range(3)] == [0, 0, None]


def test_without_boot_ids_the_begin_of_the_clock_tells_hosts_apart():
    def of(rank, booted, hostname="box"):
        begin = 10**9 * (rank + 1)
        info = {"started_at_epoch_ns": booted + begin + 900 * rank}
        return manifest(rank, begin_ns=begin, hostname=hostname, clock=clock(None, None), info=info)

    found = placements({0: of(0, EPOCH), 1: of(1, EPOCH), 2: of(2, EPOCH + 10**10)})
    assert [found[n].error_ns for n in range(3)] == [0, 0, None]
    assert found[1].offset_ns == 10**9
    found = placements({0: of(0, EPOCH), 1: of(1, EPOCH, "other"), 2: of(2, EPOCH)})
    assert [found[n].error_ns for n in range(3)] == [0, None, 0]


def test_nothing_is_known_without_any_clock():
    found = placements({0: None, 1: manifest(1, clock={}, hostname="")})
    assert [found[n].error_ns for n in range(2)] == [None, None]


def test_a_pass_over_all_parts_keeps_none_of_them(tmp_path):
    for rank in range(3):
        add_part(tmp_path, rank)
    job = epprof_nb.load(tmp_path)
    job.by_op()
    assert job._profiles._latest == {}
    held = job[1]
    assert job[1] is held
    assert job.read(1) is held


def test_profiles_leave_memory_once_the_job_keeps_enough(tmp_path, monkeypatch):
    monkeypatch.setattr("epprof_nb.jobs.part_profiles._KEPT_BYTES", 1)
    for rank in range(3):
        add_part(tmp_path, rank)
    job = epprof_nb.load(tmp_path)
    seen = [weakref.ref(job[rank]) for rank in job]
    gc.collect()
    assert [ref() is not None for ref in seen] == [False, False, True]


def compared(boot_id, samples, reference="b1"):
    return {
        **clock(boot_id),
        "samples": samples,
        "reference": {"boot_id": reference, "time_namespace": "time:[1]"},
    }


def test_a_compared_clock_is_placed_with_its_error():
    # The clock of the other host is 1 s behind, and loses 2 us per second.
    samples = [
        [0, 10**9, 3_000],
        [10**10, 10**9 + 20_000, 4_000],
        [5 * 10**9, 10**9 + 90_000, 10**6],
    ]
    found = placements(
        {
            0: manifest(0, begin_ns=10**9, end_ns=11 * 10**9),
            1: manifest(1, begin_ns=0, end_ns=10**10, clock=compared("b2", samples)),
            2: manifest(2, begin_ns=0, end_ns=10**10, clock=clock("b3")),
            3: manifest(3, begin_ns=0, end_ns=10**10, clock=clock("b3")),
        }
    )
    assert found[0].error_ns == 0
    assert found[1].offset_ns - found[0].offset_ns == 10_000
    assert found[1].error_ns == 14_000
    assert found[2].error_ns is None


def test_comparisons_of_a_part_are_checked(tmp_path):
    import pytest

    from epprof_nb.files.dataset.manifest import Manifest

    for samples in ([], [[1, 2]], [[1, 2, -3]], [[1, 2**61, 3]], "abc", [[1.5, 2, 3]]):
        text = manifest(0, clock=compared("b2", samples)).to_json()
        with pytest.raises(ValueError, match="clock in manifest"):
            Manifest.from_json(text)
    assert Manifest.from_json(manifest(0, clock=compared("b2", [[1, -2, 3]])).to_json())
