"""Collectives and stragglers of jobs: the clock of the job, parts that lack, and the notes."""

import json
from collections.abc import Mapping
from weakref import WeakSet

import pandas as pd
import pytest

from epprof_nb.data.schema import HOST_SAMPLES
from epprof_nb.jobs.job import Job
from epprof_nb.profiles import Profile
from tests.helpers.jobs import manifest
from tests.helpers.tiny import call, kernel, line, op, profile, table
from tests.helpers.walked_stacks import stack_rows, with_stacks

MS = 1_000_000
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def rank_of(slow_ms=0, steps=12):
    """A training loop whose all-reduces end every 10 ms, on the clock of its profile."""
    ops, kernels = [], []
    for step in range(steps):
        begin = step * 10 * MS
        arrive = begin + (2 + slow_ms) * MS
        ops += [
            op(3 * step + 1, "load", begin, begin + MS),
            op(3 * step + 2, "augment", begin + MS, arrive),
        ]
        kernels.append(kernel(arrive, begin + 9 * MS, name=ALL_REDUCE, thread_id=1))
    return profile(ops, kernels, info={"wall_ns": steps * 10 * MS})


def job_of(*profiles, begins=None, **fields):
    begins = begins or [0] * len(profiles)
    manifests = {
        rank: manifest(rank, **{"begin_ns": 10**9 + begin, "info": dict(prof.info), **fields})
        for rank, (prof, begin) in enumerate(zip(profiles, begins, strict=True))
    }
    return Job(dict(enumerate(profiles)), manifests)


def test_the_late_rank_and_its_op_are_named():
    job = job_of(rank_of(), rank_of(slow_ms=5), rank_of())
    waits = job.collectives()
    assert (waits[waits["rank"] == 0]["waited_ns"] == 5 * MS).all()
    assert (waits["transfer_ns"] == 2 * MS).all()
    first = job.stragglers().iloc[0]
    assert (first["rank"], first["op"], first["kind"], first["side"]) == (
        1,
        "augment",
        "op",
        "host",
    )
    assert first["waited_ns"] == 2 * 11 * 5 * MS
    assert first["share"] == 1.0
    assert (first["late"], first["collectives"]) == (11, 11)


def waiting_rank(slow=0, steps=12):
    """Each step waits for a kernel, which takes 2 ms more on a slow rank, and an op 3 ms more."""
    ops, kernels, calls = [], [], []
    for step in range(steps):
        begin = step * 10 * MS
        done, arrive = begin + (1 + 2 * slow) * MS, begin + (2 + 5 * slow) * MS
        ops += [op(2 * step + 1, "forward", begin, done), op(2 * step + 2, "augment", done, arrive)]
        kernels += [
            kernel(begin, done, 2 * step + 1, name="gemm", thread_id=1),
            kernel(arrive, begin + 9 * MS, name=ALL_REDUCE, thread_id=1),
        ]
        calls.append(call(begin, done, name="cuStreamSynchronize", op_id=2 * step + 1))
    return profile(ops, kernels, calls, info={"wall_ns": steps * 10 * MS})


def test_a_wait_for_work_that_takes_longer_is_no_reason_of_its_own():
    frame = job_of(waiting_rank(), waiting_rank(slow=1), waiting_rank()).stragglers()
    assert frame[["side", "op"]].to_numpy().tolist() == [["host", "augment"], ["device", "forward"]]
    assert frame["share"].tolist() == pytest.approx([0.6, 0.4])


def sampled(prof, interval_ms, steps):
    """The profile with a sample of a line of `augment` in some steps, 4 ms after their begin."""
    rows, ids = stack_rows("train.py:augment:31")
    found = with_stacks(prof, rows)
    samples = [
        {"start_ns": (10 * step + 4) * MS, "stack_id": ids[0], "interval_ns": interval_ms * MS,
         "thread_id": 1}
        for step in steps
    ]  # fmt: skip
    found.tables["host_samples"] = table(HOST_SAMPLES, samples)
    return found


@pytest.mark.parametrize(
    ("interval_ms", "steps", "lines"),
    [
        (10, range(2, 12, 2), [31]),  # five samples stand for 50 of 55 ms
        (6, [3, 9], [31]),  # two stand for 12 ms, which may be 29 by chance: more than half
        (1, range(1, 12), [None, 31]),  # eleven, at most for 18 ms
    ],
)
def test_few_samples_name_the_line_if_they_may_stand_for_half_of_the_time(
    interval_ms, steps, lines
):
    late = sampled(rank_of(slow_ms=5), interval_ms, steps)
    rows = job_of(rank_of(), late, rank_of()).stragglers()
    assert [None if n is pd.NA else n for n in rows["line"].astype(object)] == lines


def gloo_rank(slow_ms=0, steps=12):
    """A loop with an all-reduce on the host each 10 ms, after a line of the user."""
    ops = []
    for step in range(steps):
        begin = step * 10 * MS
        arrive = begin + (2 + slow_ms) * MS
        of = {"communicator": "secret-model", "ranks": 3, "bytes": 8, "number": step, "note": "x"}
        ops += [
            line(3 * step + 1, 8, begin, arrive, name="train(secret_weights)"),
            op(3 * step + 2, "all_reduce", arrive, arrive, op_type="collective", args=of),
        ]
    sources = {"In[1]": "\n" * 7 + "train(secret_weights)"}
    return profile(
        ops, info={"wall_ns": steps * 10 * MS, "host_collectives": steps}, sources=sources
    )


def test_the_late_rank_is_named_in_a_copy_without_source():
    job = job_of(gloo_rank(), gloo_rank(slow_ms=5), gloo_rank())
    for redact in ("source", True):
        copy = job.redacted(redact)
        waits, expected = copy.collectives(), job.collectives()
        assert len(waits) == 3 * 12
        for column in ("bytes", "waited_ns", "matched_by"):
            assert waits[column].tolist() == expected[column].tolist()
        assert len(waits["communicator"].unique()) == 1
        first = copy.stragglers().iloc[0]
        assert (first["rank"], first["op"], first["line"]) == (1, "line 8", 8)
        assert "secret" not in str([copy[0].ops.to_dict(), copy.summary()])
        assert not any("note" in args for args in copy[0].ops["args"].dropna())


def test_the_summary_begins_with_the_late_rank_and_its_line():
    job = job_of(gloo_rank(), gloo_rank(slow_ms=5), gloo_rank())
    sentence = job.summary().splitlines()[1]
    assert "Rank 1" in sentence
    assert "train(secret_weights)" in sentence
    assert "line 8" in sentence
    found = json.loads(job.summary(format="json"))
    assert (found["sentence"], found["stragglers"][0]["line"]) == (sentence, 8)
    assert "Rank 1" in job.summary(500).splitlines()[1]


def idle_rank(*ops):
    """Two kernels with 40 ms between them, and 50 ms after the second one."""
    kernels = [kernel(0, 5 * MS, thread_id=1), kernel(45 * MS, 50 * MS, thread_id=1)]
    return profile(ops, kernels, info={"wall_ns": 100 * MS})


def test_the_summary_names_ops_that_left_devices_idle():
    job = job_of(idle_rank(op(1, "load", 5 * MS, 45 * MS)), idle_rank())
    (finding,) = [text for text in job.summary().splitlines() if "idle 40.0 ms" in text]
    assert finding.startswith("  rank 0: ")
    assert "`load`" in finding
    found = json.loads(job.summary(format="json"))["findings"]
    assert [f["text"].startswith("rank 0: ") for f in found] == [True]
    assert 0 < found[0]["gain_ns"] <= 45 * MS


def test_begins_of_profiles_count():
    job = job_of(rank_of(), rank_of(), begins=[0, 3 * MS])
    waits = job.collectives()
    assert (waits[waits["rank"] == 0]["waited_ns"] == 3 * MS).all()


def test_without_a_common_clock_no_waiting_is_stated():
    job = job_of(rank_of(), rank_of(slow_ms=5), clock={"boot_id": "b1", "error_ns": None})
    waits = job.collectives()
    assert waits[waits["rank"] == 0]["waited_ns"].isna().all()
    assert waits["transfer_ns"].isna().all()
    assert len(job.stragglers()) == 0


def test_ranks_alike_have_no_straggler_and_a_note():
    frame = job_of(rank_of(), rank_of()).stragglers()
    assert len(frame) == 0
    assert "No rank was late at 11 collectives" in frame.attrs["note"]
    assert "longest" not in frame.attrs["note"]


def late_once(late_ms, waiting_cores):
    """A loop after 10 s of imports, which is late once, on a machine with too few cores."""
    kernels, begin = [], 10_000 * MS
    for step in range(12):
        arrive = begin + (2 + (late_ms if step == 6 else 0)) * MS
        begin += (410 if step == 6 else 10) * MS
        kernels.append(kernel(arrive, begin - MS, name=ALL_REDUCE, thread_id=1))
    load = {"own_cores": waiting_cores, "waiting": 0.5}
    return profile((), kernels, info={"wall_ns": begin, "load": load})


@pytest.mark.parametrize(("waiting_cores", "late"), [(0.5, [1]), (0.9, [])])
def test_waits_for_a_core_count_as_far_as_collectives_are_compared(waiting_cores, late):
    frame = job_of(late_once(0, waiting_cores), late_once(400, waiting_cores)).stragglers()
    assert frame["rank"].tolist() == late
    if not late:
        assert "The longest wait, 400 ms, was for rank 1." in frame.attrs["note"]


def test_communication_of_each_rank():
    frame = job_of(rank_of(), rank_of(slow_ms=5)).by_rank()
    assert frame["communication_ns"].tolist() == [12 * 7 * MS, 12 * 2 * MS]
    assert frame["overlapped_ns"].tolist() == [0, 0]


def test_communication_on_the_host_without_an_end_is_missing():
    job = job_of(gloo_rank(), gloo_rank(slow_ms=5), rank_of())
    frame = job.by_rank()
    assert frame["communication_ns"].isna().tolist() == [True, True, False]
    assert frame["overlapped_ns"].isna().tolist() == [True, True, False]
    assert json.loads(job.summary(format="json"))["by_rank"][0]["communication_ns"] is None


def test_the_notes_say_what_is_not_matched():
    frame = job_of(rank_of(), rank_of(steps=11)).collectives()
    assert "different numbers of collectives" in frame.attrs["note"]
    assert "No collective was recorded" in job_of(profile(), profile()).collectives().attrs["note"]


class ReadProfiles(Mapping):
    """Profiles that are copied on each read, with the largest number that were alive at once."""

    def __init__(self, profiles):
        self.profiles, self.alive, self.most = profiles, WeakSet(), 0

    def __getitem__(self, rank):
        return self.read(rank)

    def read(self, rank):
        found = Profile.from_data(self.profiles[rank])
        self.alive.add(found)
        self.most = max(self.most, len(self.alive))
        return found

    def __iter__(self):
        return iter(self.profiles)

    def __len__(self):
        return len(self.profiles)


def test_the_profiles_of_all_ranks_are_not_kept():
    ranks = [rank_of(slow_ms=5 * (rank == 3)) for rank in range(6)]
    read = ReadProfiles(dict(enumerate(ranks)))
    job = Job(read, {rank: manifest(rank, begin_ns=10**9) for rank in read})
    assert job.stragglers().loc[0, "rank"] == 3
    assert len(job.collectives()) == 6 * 12
    assert read.most <= 2
    assert len(read.alive) == 0


def test_all_times_are_on_the_clock_of_the_job():
    worker, first, second = rank_of(), rank_of(), rank_of(slow_ms=5)
    manifests = {
        rank: manifest(rank, begin_ns=10**9 + begin * MS, info=dict(first.info))
        for rank, begin in ((0, 40), (1, 40))
    }
    # A process without a rank began before the ranks: the job's clock begins with it.
    manifests[2] = manifest(None, pid=9, begin_ns=10**9, info=dict(worker.info))
    job = Job({0: first, 1: second, 2: worker}, manifests)
    waits = job.collectives()
    begin = waits[waits["collective"] == 0]["arrive_ns"].min()
    assert begin == 42 * MS
    end = waits[waits["collective"] == 0]["end_ns"].max()
    kernels = job.window(int(begin), int(end), ranks=[0, 1]).activities
    assert sorted(kernels["start_ns"]) == [0, 5 * MS]
    assert job.placements[0].offset_ns == 40 * MS


def test_without_manifests_profiles_are_placed_by_the_system_clock():
    first, second = rank_of(), rank_of()
    first.info["started_at_epoch_ns"], second.info["started_at_epoch_ns"] = 7 * MS, 4 * MS
    job = Job({0: first, 1: second})
    assert job.collectives().groupby("rank")["arrive_ns"].min().tolist() == [5 * MS, 2 * MS]
    assert job.placements[0].offset_ns == 3 * MS
    assert job.end_ns == 123 * MS
