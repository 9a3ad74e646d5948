"""SQL over the files of a job."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import epprof_nb
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.files.dataset.part import write_part
from epprof_nb.jobs import part_profiles
from epprof_nb.jobs.job import Job
from epprof_nb.profiles import Profile
from epprof_nb.testing import synthetic_profile
from tests.helpers.jobs import add_part, manifest

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    job = Job({rank: synthetic_profile(activities=1_000 + rank, seed=rank) for rank in range(2)})
    job.save(folder / "it's 1")
    return epprof_nb.load(folder / "it's 1")


def test_sums_are_those_of_the_profiles(job):
    found = job.sql(
        "select rank, count(*) n, sum(duration_ns)::bigint t from activities group by rank "
        "order by rank"
    )
    for rank, n, t in found.itertuples(index=False):
        assert (n, t) == (1_000 + rank, job[rank].activities["duration_ns"].sum())
    kernels = job.sql("select count(*) n from device_work where kind = 'kernel'")["n"][0]
    assert kernels == job.by_rank()["kernels"].sum()
    rows = job.sql("select * from activities where rank = 1 order by correlation_id")
    assert [*rows.columns][-1] == "rank"
    launched = job[1].activities.sort_values("correlation_id")
    assert rows["name"].tolist() == launched["name"].tolist()


def test_times_are_joined_to_the_clock_of_the_job(job):
    found = job.sql("select max(end_ns + offset_ns) e from activities join ranks using (rank)")
    assert found["e"][0] <= job.end_ns
    assert job.sql("select count(*) n from ranks where state = 'complete'")["n"][0] == 2


def values(column):
    return [None if pd.isna(value) else value for value in column]


def test_ranks_are_the_columns_of_job_ranks_that_need_no_events(tmp_path, monkeypatch):
    add_part(tmp_path, 0, address="tcp://a:1", command=["python", "a\udcff.py"])
    unrecorded = manifest(2, state="not recorded", reason="no GPU", world_size=3)
    write_part(ProfileData(), tmp_path / unrecorded.folder_name, unrecorded)
    job = epprof_nb.load(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(part_profiles, "read_pieces", None)
        patch.setattr(part_profiles, "read_columns", None)
        found = job.sql("from ranks order by rank")
    expected = job.ranks.reset_index().drop(columns=["devices", "busy_ns", "idle_ns"])
    assert [*found] == [*expected, "wall_ns", "offset_ns"]
    for name in expected:
        assert values(found[name]) == values(expected[name]), name
    assert found["address"].tolist() == ["tcp://a:1", None, None]
    assert found["state"].tolist() == ["complete", "missing", "not recorded"]
    assert found["dropped"].tolist()[0] == 0


def test_processes_without_a_rank_have_their_number(tmp_path):
    for pid in (7, 8):
        part = tmp_path / f"rank-none-{pid}"
        write_part(synthetic_profile(activities=pid), part, manifest(None, pid=pid))
    found = epprof_nb.load(tmp_path).sql(
        "select rank, count(*) n from activities group by rank order by rank"
    )
    assert found.to_numpy().tolist() == [[0, 7], [1, 8]]


def test_files_with_and_without_an_optional_column_are_read_together(tmp_path):
    profiles = {rank: synthetic_profile(activities=10, seed=rank) for rank in range(4)}
    for rank in (1, 3):
        ops = profiles[rank].tables["ops"]
        with_sizes = ops.replace(output_bytes=np.full(len(ops), 100 + rank))
        tables = profiles[rank].tables | {"ops": with_sizes}
        profiles[rank] = Profile.from_data(ProfileData(tables, profiles[rank].info))
    Job(profiles).save(tmp_path)
    found = epprof_nb.load(tmp_path).sql(
        "select rank, max(output_bytes) b from ops group by rank order by rank"
    )
    assert found["rank"].tolist() == [0, 1, 2, 3]
    assert found["b"].isna().tolist() == [True, False, True, False]
    assert found["b"].dropna().tolist() == [101, 103]


def test_a_job_in_memory_and_a_redacted_one_can_be_queried(job):
    query = "select count(*) n from activities"
    assert Job({r: job[r] for r in job}).sql(query)["n"][0] == 2_001
    assert job.redacted("source").sql(query)["n"][0] == 2_001


def test_tables_that_no_part_has_are_empty(job):
    assert len(job.sql("select op_id, rank from memory")) == 0


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('/etc/passwd')",
        "select * from read_parquet('{other}')",
        "select * from '{other}'",
        "select * from glob('/*')",
        "copy (select 1) to '{other}.csv'",
        "set allowed_directories = ['/']",
        "install httpfs",
        "select 1; select 2",
    ],
)
def test_a_query_reads_no_other_file(job, tmp_path, query):
    write_part(ProfileData(synthetic_profile(activities=9).tables), tmp_path / "p", manifest(0))
    other = tmp_path / "p" / "activities.parquet"
    assert other.exists()
    with pytest.raises(ValueError, match=r"the query (failed|must be)"):
        job.sql(query.format(other=other))


def test_a_sort_larger_than_the_memory_uses_a_temporary_folder(job):
    query = (
        "select sum(hash(n) % 2)::bigint s from (select a.name || b.start_ns || b.name as n, "
        "row_number() over (order by n) r from activities a, activities b)"
    )
    assert job.sql(query, max_bytes=120_000_000, time_limit_s=500)["s"][0] > 0


def test_a_part_without_its_file_is_left_out_and_named(tmp_path):
    Job({rank: synthetic_profile(activities=10) for rank in range(2)}).save(tmp_path)
    job = epprof_nb.load(tmp_path)
    (tmp_path / "rank-00001-2" / "activities.parquet").unlink()
    frame = job.sql("select distinct rank from activities")
    assert frame["rank"].tolist() == [0]
    assert "rank 1" in frame.attrs["note"]


DAMAGE = {
    "another bit": lambda data: data[:500] + bytes([data[500] ^ 4]) + data[501:],
    "cut short": lambda data: data[: len(data) // 2],
    "empty": lambda _: b"",
    "another file": lambda _: b"PAR1" * 10,
}


@pytest.fixture
def folder(tmp_path):
    Job({rank: synthetic_profile(activities=100, seed=rank) for rank in range(2)}).save(tmp_path)
    return tmp_path


def damage(folder, rank, change, table="activities"):
    path = folder / f"rank-0000{rank}-{rank + 1}" / f"{table}.parquet"
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize("is_redacted", [False, True])
@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_part_is_left_out_as_when_it_is_read(folder, change, is_redacted):
    damage(folder, 1, change)
    job = epprof_nb.load(folder)
    job = job.redacted("source") if is_redacted else job
    frame = job.sql("select rank, count(*) n from activities group by rank")
    assert frame.to_numpy().tolist() == [[0, 100]]
    assert "rank 1" in frame.attrs["note"]
    with pytest.raises(ProfileFileError) as error:
        job[1]
    assert job.damage == {1: str(error.value)}
    assert job.ranks["state"].tolist() == ["complete", "damaged"]
    assert job.sql("select rank, state from ranks").to_numpy().tolist() == [
        [0, "complete"], [1, "damaged"],
    ]  # fmt: skip


def test_files_are_checked_once_and_again_if_they_change(folder, monkeypatch):
    job, checked = epprof_nb.load(folder), []

    def check(part, manifest):
        checked.append(manifest.rank)
        check_files(part, manifest)

    check_files = part_profiles.check_files
    monkeypatch.setattr(part_profiles, "check_files", check)
    for _ in range(2):
        assert job.sql("select distinct rank from ops order by rank")["rank"].tolist() == [0, 1]
    assert checked == [0, 1]
    damage(folder, 0, DAMAGE["another bit"])
    for _ in range(2):
        assert job.sql("select distinct rank from ops")["rank"].tolist() == [1]
    assert checked == [0, 1, 0]


def test_a_part_that_states_other_rows_than_it_has_is_damaged(folder):
    path = folder / "rank-00001-2" / "manifest.json"
    stated = json.loads(path.read_text())
    stated["tables"]["activities"]["rows"] += 1
    path.write_text(json.dumps(stated))
    job = epprof_nb.load(folder)
    assert job.sql("select distinct rank from activities")["rank"].tolist() == [0]
    assert "has 100 rows instead of 101" in job.ranks.loc[1, "reason"]


@pytest.mark.parametrize("is_redacted", [False, True])
def test_a_job_of_damaged_parts_only_is_an_error(folder, is_redacted):
    for rank in range(2):
        damage(folder, rank, DAMAGE["cut short"])
    job = epprof_nb.load(folder)
    with pytest.raises(ProfileFileError, match=r"all its parts are damaged; rank 0: .*checksum"):
        (job.redacted("source") if is_redacted else job).sql("select 1")


def test_limits_end_a_query(job):
    with pytest.raises(TimeoutError):
        job.sql("select count(*) from activities a, activities b, activities c, activities d",
                time_limit_s=0.5)  # fmt: skip
