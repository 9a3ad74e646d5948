"""Folders of jobs: whole ones, and parts that are missing, damaged, foreign or twice there."""

import dataclasses
import json
import os
import shutil

import numpy as np
import pytest
from pandas.testing import assert_frame_equal

import epprof_nb
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.files.dataset.part import read_manifest
from epprof_nb.files.epprof import parquet
from epprof_nb.jobs import part_profiles
from epprof_nb.jobs.job import Job
from epprof_nb.jobs.job_views import view_of
from epprof_nb.profiles import Profile
from epprof_nb.testing import synthetic_job, synthetic_profile
from tests.helpers import jobs
from tests.helpers.jobs import add_part
from tests.helpers.tiny import kernel, op
from tests.helpers.tiny import profile as tiny_profile


def test_a_folder_loads_as_a_job(tmp_path):
    for rank in range(3):
        add_part(tmp_path, rank, world_size=3)
    job = epprof_nb.load(tmp_path)
    assert isinstance(job, Job)
    assert list(job) == [0, 1, 2]
    assert len(job) == 3
    assert 2 in job
    assert 3 not in job
    assert job.notes == []
    assert job.is_complete
    assert job[1].by_op().equals(synthetic_profile(200, seed=1).by_op())
    assert job.ranks["launched"].all()
    assert job.ranks["state"].tolist() == ["complete"] * 3
    assert job.ranks.loc[2, "pid"] == 1002
    assert job.ranks.loc[2, "command"] == "python train.py"
    assert job.ranks["clock_error_ns"].tolist() == [0, 0, 0]


def test_a_file_still_loads_as_a_profile(tmp_path):
    synthetic_profile(100).save(tmp_path / "a.epprof")
    assert isinstance(epprof_nb.load(tmp_path / "a.epprof"), epprof_nb.Profile)


def test_sums_are_those_of_the_profiles(tmp_path):
    profiles = [synthetic_profile(200 + 10 * rank, seed=rank) for rank in range(3)]
    for rank, profile in enumerate(profiles):
        add_part(tmp_path, rank, profile=profile)
    job = epprof_nb.load(tmp_path)
    devices = [profile.by_device().iloc[0] for profile in profiles]
    for table in (job.by_rank(), job.by_device()):
        for name in ("device_ns", "busy_ns", "idle_ns", "kernels", "memcpys", "bytes"):
            assert table[name].tolist() == [device[name] for device in devices], name
    by_op = job.by_op().set_index("name")
    per_rank = [profile.by_op().set_index("name") for profile in profiles]
    for name in ("attention", "In[3]"):
        if name not in by_op.index:
            continue
        times = [frame.loc[name, "device_ns"] for frame in per_rank]
        assert by_op.loc[name, "device_ns"] == sum(times)
        assert by_op.loc[name, "max_device_ns"] == max(times)
        assert by_op.loc[name, "min_device_ns"] == min(times)
        assert by_op.loc[name, "max_device_rank"] == times.index(max(times))
        assert by_op.loc[name, "ranks"] == 3
    total = sum(profile.by_op()["self_device_ns"].sum() for profile in profiles)
    assert by_op["self_device_ns"].sum() == total


def test_host_times_that_no_process_measured_are_missing():
    learned = tiny_profile([op(1, "node", 0, 7, status="learned")], [kernel(0, 9, 1)])
    ran = tiny_profile([op(1, "node", 0, 5)], [kernel(0, 9, 1)])
    host = ["host_ns", "min_host_ns", "max_host_ns", "max_host_rank"]
    first, both = (
        Job(dict(enumerate(ranks))).by_op().iloc[0] for ranks in ([learned] * 2, [learned, ran])
    )
    assert first[host].isna().all()
    assert first["device_ns"] == 18
    assert both[host].tolist() == [5, 5, 5, 1]


def test_processes_without_a_device_do_not_count_for_the_median():
    client = tiny_profile()
    workers = [tiny_profile(activities=[kernel(0, end)]) for end in (374, 119)]
    ratio = Job(dict(enumerate([client, *workers]))).by_rank()["vs_median"]
    assert ratio.isna().tolist() == [True, False, False]
    assert ratio[1:].tolist() == [374 / 246.5, 119 / 246.5]
    assert Job({0: client}).by_rank()["vs_median"].isna().all()
    no_time = tiny_profile(activities=[kernel(0, 0)])
    assert Job({0: no_time}).by_rank()["vs_median"].isna().all()


def test_tables_read_only_what_they_need(tmp_path, monkeypatch):
    for rank in range(2):
        add_part(tmp_path, rank)
    for path in tmp_path.glob("*/*.parquet"):
        if path.stem != "activities":
            path.write_bytes(b"damaged")
    job = epprof_nb.load(tmp_path)
    assert job.by_rank()["kernels"].gt(0).all()
    with pytest.raises(ProfileFileError, match="checksum"):
        job[0]


@pytest.mark.parametrize("duration_ns", [-5, 2**63 - 1])
def test_impossible_durations_do_not_count(tmp_path, duration_ns):
    forged = tiny_profile(activities=[kernel(0, 7), kernel(10, 30, duration_ns=duration_ns)])
    add_part(tmp_path, 0, profile=forged)
    for table in (epprof_nb.load(tmp_path).by_rank(), epprof_nb.load(tmp_path).by_device()):
        assert table["device_ns"].tolist() == [7]
        assert table["kernels"].tolist() == [2]


def test_busy_and_idle_need_no_activities_in_memory(tmp_path, monkeypatch):
    profile = in_order(synthetic_profile(activities=1_000))
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 100)
    for rank in range(2):
        add_part(tmp_path, rank, profile=profile)
    whole = Job(dict.fromkeys(range(2), profile))
    monkeypatch.setattr(part_profiles, "read_profile", None)
    monkeypatch.setattr(part_profiles, "read_columns", None)
    job = epprof_nb.load(tmp_path)
    for table in ("by_rank", "by_device"):
        assert_frame_equal(getattr(job, table)(), getattr(whole, table)())


def in_order(profile):
    """The profile with its activities in the order of their starts, as recordings have them."""
    activities = profile.tables["activities"]
    order = np.argsort(activities["start_ns"], kind="stable")
    return Profile({**profile.tables, "activities": activities.take(order)}, profile.info)


def test_a_job_may_have_hundreds_of_parts(tmp_path):
    first = add_part(tmp_path, 0, activities=20, world_size=300)
    stated = read_manifest(first)
    for rank in range(1, 300):
        manifest = jobs.manifest(rank, world_size=300)
        part = tmp_path / manifest.folder_name
        part.mkdir()
        for table in first.glob("*.parquet"):
            (part / table.name).hardlink_to(table)
        same = dataclasses.replace(stated, rank=rank, pid=manifest.pid)
        (part / "manifest.json").write_bytes(same.to_json())
    job = epprof_nb.load(tmp_path)
    assert len(job) == 300
    assert not job.notes
    counts = job.sql("select count(distinct rank) ranks, count(*) rows from activities")
    assert counts.to_numpy().tolist() == [[300, 6_000]]


@pytest.mark.parametrize("table", ["by_op", "by_task", "by_rank"])
def test_tables_over_all_processes_hold_one_row_group_at_once(tmp_path, monkeypatch, table):
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 50)
    job = synthetic_job(tmp_path, activities=1_000, ranks=2)
    expected = getattr(Job({rank: job.read(rank) for rank in job}), table)()
    lengths = []

    def read_groups(*args, **more):
        for piece in decode_groups(*args, **more):
            lengths.append(len(piece))
            yield piece

    def read_whole(folder, manifest, columns, **_):
        assert "activities" not in columns
        return read_columns(folder, manifest, columns)

    decode_groups, read_columns = parquet.decode_groups, part_profiles.read_columns
    monkeypatch.setattr(parquet, "decode_groups", read_groups)
    monkeypatch.setattr(part_profiles, "read_columns", read_whole)
    monkeypatch.delattr(part_profiles, "read_profile")
    assert getattr(epprof_nb.load(tmp_path), table)().equals(expected)
    assert max(lengths) == 50


def test_missing_ranks_are_named_and_totals_say_so(tmp_path):
    for rank in (0, 3):
        add_part(tmp_path, rank, world_size=4)
    job = epprof_nb.load(tmp_path)
    assert list(job) == [0, 3]
    assert job.ranks["state"].tolist() == ["complete", "missing", "missing", "complete"]
    assert "2 ranks of 4 are missing (1, 2)" in job.notes[0]
    assert not job.is_complete
    assert "do not cover the whole job" in job.by_rank().attrs["note"]
    assert "2 of 4 processes" in repr(job)
    with pytest.raises(KeyError, match="missing"):
        job[1]
    with pytest.raises(KeyError, match="has no rank 9"):
        job[9]


def test_processes_without_a_rank_get_the_numbers_after_it(tmp_path):
    add_part(tmp_path, None, pid=50, begin_ns=9)
    add_part(tmp_path, None, pid=60, begin_ns=5)
    add_part(tmp_path, 4)
    job = epprof_nb.load(tmp_path)
    assert job.ranks["pid"].to_dict() == {4: 1004, 5: 60, 6: 50}
    assert job.ranks["launched"].tolist() == [True, False, False]


def test_children_of_a_rank_that_inherit_its_environment_are_not_the_rank(tmp_path):
    add_part(tmp_path, 0, world_size=1)
    add_part(tmp_path, 0, pid=70, parent_pid=1000, followed="fork", begin_ns=10**10, end_ns=10**12)
    add_part(tmp_path, 0, pid=71, parent_pid=70, followed="fork", begin_ns=10**11, end_ns=10**12)
    job = epprof_nb.load(tmp_path)
    assert job.ranks["pid"].tolist() == [1000, 70, 71]
    assert job.ranks["launched"].tolist() == [True, False, False]
    assert job.notes == []


def test_two_starts_of_a_rank_are_named(tmp_path):
    add_part(tmp_path, 0, begin_ns=5)
    add_part(tmp_path, 0, pid=70, begin_ns=50)
    job = epprof_nb.load(tmp_path)
    assert job.ranks["pid"].tolist() == [70, 1000]
    assert "Rank 0 has 2 parts" in job.notes[0]


def test_copies_of_a_part_count_once(tmp_path):
    part = add_part(tmp_path, 0)
    shutil.copytree(part, tmp_path / "rank-00000-1000-2")
    job = epprof_nb.load(tmp_path)
    assert len(job) == 1
    assert "1 part there twice" in job.notes[0]


def test_of_jobs_with_as_many_parts_the_last_one_counts(tmp_path):
    add_part(tmp_path, 0, job_id="other", begin_ns=5)
    add_part(tmp_path, 1, begin_ns=50)
    assert list(epprof_nb.load(tmp_path)) == [1]


def test_parts_of_another_job_are_left_out(tmp_path):
    for rank in range(2):
        add_part(tmp_path, rank)
    add_part(tmp_path, 2, job_id="other")
    job = epprof_nb.load(tmp_path)
    assert list(job) == [0, 1]
    assert "1 part of another job was left out ('rank-00002-1002')" in job.notes[0]


def test_parts_of_one_run_on_several_hosts_are_one_job(tmp_path):
    for rank, run_id in enumerate(["run 7"] * 2 + ["run 8"]):
        host = {"hostname": f"node{rank}", "job_id": f"j{rank}", "run_id": run_id}
        add_part(tmp_path, rank, world_size=3, begin_ns=100 - rank, **host)
    job = epprof_nb.load(tmp_path)
    assert list(job) == [0, 1]
    assert "1 part of another job was left out ('rank-00002-1002')" in job.notes[0]
    assert "copy these into the folder" in job.notes[1]
    # The same rank of the same run is that of an earlier launch.
    add_part(tmp_path, 0, pid=7, job_id="j7", run_id="run 7", world_size=3, begin_ns=1)
    assert [p.pid for p in epprof_nb.load(tmp_path).processes if p.has_profile] == [1000, 1001]


def test_parts_without_an_id_of_their_run_are_not_to_be_copied(tmp_path):
    for rank in range(2):
        add_part(tmp_path, rank, world_size=2, job_id=f"j{rank}")
    left_out, missing = epprof_nb.load(tmp_path).notes
    assert "left out" in left_out
    assert missing.endswith("or their parts are on another host.")


def test_broken_parts_do_not_spoil_the_others(tmp_path):
    for rank in range(4):
        add_part(tmp_path, rank, world_size=4)
    (tmp_path / "rank-00001-1001" / "manifest.json").unlink()
    (tmp_path / "rank-00002-1002" / "manifest.json").write_text("{")
    (tmp_path / "rank-00003-1003" / "activities.parquet").write_bytes(b"PAR1")
    job = epprof_nb.load(tmp_path)
    assert job.by_rank().index.tolist() == [0]
    assert job.ranks["state"].tolist() == ["complete", "unfinished", "damaged", "damaged"]
    assert job.ranks["launched"].all()
    assert "checksum" in job.ranks.loc[3, "reason"]
    assert job.by_op()["ranks"].max() == 1
    assert "do not cover the whole job" in job.by_op().attrs["note"]


def test_processes_that_were_seen_but_not_recorded_are_listed(tmp_path):
    add_part(tmp_path, 0)
    folder = add_part(tmp_path, None, pid=77, state="not recorded", reason="no package")
    assert folder.name == "rank-none-77"
    job = epprof_nb.load(tmp_path)
    assert list(job) == [0]
    assert job.ranks.loc[1, ["state", "reason"]].tolist() == ["not recorded", "no package"]
    with pytest.raises(KeyError, match="no package"):
        job[1]


@pytest.mark.parametrize("make", ["empty", "other", "only files"])
def test_a_folder_of_something_else_is_refused(tmp_path, make):
    if make == "other":
        (tmp_path / "rank-").write_text("")
        (tmp_path / "photos").mkdir()
    elif make == "only files":
        synthetic_profile(10).save(tmp_path / "a.epprof")
    with pytest.raises(ProfileFileError, match="not the folder of a job"):
        epprof_nb.load(tmp_path)


def test_hostile_names_and_sizes_are_bounded(tmp_path):
    add_part(tmp_path, 0)
    (tmp_path / "rank-\x1b[2J\n").mkdir()
    (tmp_path / "rank-99999999999-1").mkdir()
    (tmp_path / "rank-00009-9").symlink_to("/proc")
    path = tmp_path / "rank-00000-1000" / "manifest.json"
    stated = json.loads(path.read_text())
    path.write_text(json.dumps({**stated, "world_size": 2**31 - 1}))
    job = epprof_nb.load(tmp_path)
    assert list(job) == [0]
    assert len(job.ranks) < 5_000
    assert "missing" in job.notes[0]


def test_a_manifest_may_not_be_a_pipe(tmp_path):
    add_part(tmp_path, 0)
    (tmp_path / "rank-00001-5").mkdir()
    os.mkfifo(tmp_path / "rank-00001-5" / "manifest.json")
    assert epprof_nb.load(tmp_path).ranks["state"].tolist() == ["complete", "damaged"]


def test_other_tools_read_all_parts_at_once(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    for rank in range(3):
        add_part(tmp_path, rank)
    rows = duckdb.sql(
        f"SELECT rank, sum(duration_ns) FROM '{tmp_path}/*/activities.parquet' "
        "WHERE kind IN ('kernel', 'memcpy', 'memset') GROUP BY rank ORDER BY rank"
    ).fetchall()
    assert [int(time) for _, time in rows] == epprof_nb.load(tmp_path).by_rank()[
        "device_ns"
    ].tolist()


def test_parts_that_are_links_are_left_out(tmp_path):
    elsewhere = add_part(tmp_path / "other", 1)
    add_part(tmp_path / "run", 0)
    (tmp_path / "run" / elsewhere.name).symlink_to(elsewhere)
    assert list(epprof_nb.load(tmp_path / "run")) == [0]


@pytest.mark.parametrize("name", ["x" * 300, "../../x", "x\0y", "\x1b[31m"])
def test_tables_with_other_names_are_ignored(tmp_path, name):
    part = add_part(tmp_path, 0)
    stated = json.loads((part / "manifest.json").read_text())
    stated["tables"][name] = {"rows": 1, "sha256": ""}
    (part / "manifest.json").write_text(json.dumps(stated))
    job = epprof_nb.load(tmp_path)
    assert list(job) == [0]
    assert len(job[0].activities) == 200


def test_a_zipped_job_is_to_be_unzipped_first(tmp_path):
    job = Job({rank: synthetic_profile(30) for rank in range(2)})
    job.save(tmp_path / "run")
    for name, base in (("inside", tmp_path / "run"), ("with_folder", tmp_path)):
        archive = shutil.make_archive(str(tmp_path.parent / name), "zip", base)
        with pytest.raises(ProfileFileError, match="unzip it first"):
            epprof_nb.load(archive)


def test_dropped_records_are_counted_by_process(tmp_path):
    for rank, lost in enumerate((0, 3, 1_200)):
        profile = synthetic_profile(200, seed=rank)
        profile.info["recorded"] = {"launched": {"kernel": 9_000}, "lost": {"kernel": lost}}
        add_part(tmp_path, rank, profile=profile)
    job = epprof_nb.load(tmp_path)
    (note,) = [note for note in job.notes if "dropped" in note]
    assert note == (
        "1,203 records were dropped (1,200 of rank 2, 3 of rank 1), so totals do not include "
        "all work: raise max_records, or profile a smaller part of the code."
    )
    assert job.ranks["dropped"].tolist() == [0, 3, 1_200]
    assert repr(job).endswith("1,203 records dropped")
    assert note in job.by_op().attrs["note"]
    assert job.summary().count(note) == 1
    assert note in view_of(job).shown.notes
