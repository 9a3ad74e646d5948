"""Jobs that are saved, copied, pickled and redacted."""

import copy
import json
import os
import pickle
import shutil

import pytest

import epprof_nb
from epprof_nb.jobs.job import Job
from epprof_nb.testing import synthetic_profile
from tests.helpers import tiny
from tests.helpers.jobs import add_part, manifest
from tests.helpers.walked_stacks import stack_rows, with_stacks

SECRET = {
    "hostname": "gpu17.secret.corp",
    "command": ["python", "/home/ada/train.py", "--token=hunter2"],
    "reason": "exit of /home/ada/train.py on gpu17.secret.corp",
}


@pytest.fixture
def stored(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    for rank in (0, 1):
        add_part(folder, rank, pid=54321 + rank, world_size=3, **SECRET)
    add_part(folder, None, pid=4321, state="not recorded", parent_pid=54322, **SECRET)
    return folder


def same(one, other):
    assert list(one) == list(other)
    assert one.ranks.equals(other.ranks)
    assert one.by_op().equals(other.by_op())
    assert {n: p.offset_ns for n, p in one.placements.items()} == {
        n: p.offset_ns for n, p in other.placements.items()
    }


def test_a_saved_job_is_the_same_again(stored, tmp_path):
    job = epprof_nb.load(stored)
    job.save(tmp_path / "copy")
    loaded = epprof_nb.load(tmp_path / "copy")
    same(job, loaded)
    assert loaded.notes == job.notes
    assert loaded[1].activities.equals(job[1].activities)


def test_a_job_of_profiles_can_be_saved(tmp_path):
    job = Job({rank: synthetic_profile(50, seed=rank) for rank in (0, 2)})
    job.save(tmp_path / "a")
    loaded = epprof_nb.load(tmp_path / "a")
    assert list(loaded) == [0, 2]
    assert loaded.by_rank()["kernels"].tolist() == job.by_rank()["kernels"].tolist()


def test_saving_does_not_mix_two_jobs(stored):
    with pytest.raises(FileExistsError, match="name a new folder"):
        epprof_nb.load(stored).save(stored)


def test_saving_onto_a_file_says_what_to_do(stored, tmp_path):
    (tmp_path / "run.epprof").write_bytes(b"other")
    with pytest.raises(FileExistsError, match="is a file"):
        epprof_nb.load(stored).save(tmp_path / "run.epprof")
    assert (tmp_path / "run.epprof").read_bytes() == b"other"


def test_saving_without_a_name_is_refused(stored, tmp_path, monkeypatch):
    job = epprof_nb.load(stored)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(ValueError, match="no name"):
        job.save("")
    assert not list((tmp_path / "here").iterdir())


def test_saving_onto_what_is_no_folder_says_what_to_do(stored, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    os.mkfifo(tmp_path / "fifo")
    job = epprof_nb.load(stored)
    for name, kind in (("link", "a link to nothing"), ("fifo", "a file"), ("/dev/null", "a file")):
        with pytest.raises(FileExistsError, match=f"is {kind}, .*name a new folder"):
            job.save(tmp_path / name)


def test_damaged_and_unfinished_parts_keep_their_reason(stored, tmp_path):
    (stored / "rank-00001-54322" / "ops.parquet").write_bytes(b"")
    (stored / "rank-00002-7").mkdir()
    epprof_nb.load(stored).save(tmp_path / "copy")
    table = epprof_nb.load(tmp_path / "copy").ranks
    assert table["state"].tolist() == ["complete", *["not recorded"] * 3]
    assert "checksum of the table ops" in table.loc[1, "reason"]
    assert "unfinished" in table.loc[2, "reason"]


@pytest.mark.parametrize(
    "copied", [lambda j: pickle.loads(pickle.dumps(j)), copy.copy, copy.deepcopy]
)
def test_copies_are_the_same(stored, copied):
    job = epprof_nb.load(stored)
    same(job, copied(job))


def test_a_pickle_does_not_need_the_folder(stored):
    text = pickle.dumps(epprof_nb.load(stored))
    shutil.rmtree(stored)
    assert len(pickle.loads(text)[0].activities) == 200


def test_a_redacted_job_tells_nothing(stored, tmp_path):
    (stored / "rank-00000-77").mkdir()
    (stored / "rank-00001-54322" / "ops.parquet").write_bytes(b"")
    job = epprof_nb.load(stored).redacted()
    texts = [job.ranks.to_csv(), job.summary(), job.summary(format="json"), *job.notes]
    with pytest.raises(Exception, match="checksum") as caught:
        job[1]
    texts.append(str(caught.value))
    job.save(tmp_path / "copy")
    texts += [p.read_text() for p in (tmp_path / "copy").glob("*/manifest.json")]
    texts += [p.name for p in (tmp_path / "copy").iterdir()]
    for text in texts:
        for secret in ("gpu17", "ada", "hunter2", "4321", "54322", str(stored), 'b1"', "time:["):
            assert secret not in text, secret
    assert job.ranks["hostname"].dropna().unique().tolist() == ["host 1"]
    # The child still refers to its parent.
    child, parent = job.ranks.loc[3], job.ranks.loc[1]
    assert child["parent"] == parent["pid"]
    assert job[0].info["redacted"]
    assert job.by_rank()["kernels"].gt(0).all()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_redacted_functions_and_files_have_the_same_name_in_each_rank(order):
    # The extra function of rank 1 comes first in the alphabet.
    stacks = {0: "a/train.py:step:2", 1: "a/early.py:augment:5 a/train.py:step:2"}
    job = Job({n: with_stacks(tiny.profile(), stack_rows(s)[0]) for n, s in stacks.items()})
    copy = job.redacted()
    found = {}
    for rank in order:
        table = copy[rank].tables["stacks"]
        found[rank] = (table.names("function").to_list()[-1], table.names("file").to_list()[-1])
    assert found[0] == found[1]
    assert len(set(copy[1].tables["stacks"].names("function").to_list())) == 2


def test_parts_of_a_redaction_are_those_of_profiles(stored):
    job = epprof_nb.load(stored)
    assert job.redacted(False) is job
    shapes = job.redacted("shapes")
    assert "hunter2" in shapes.ranks["command"].iloc[0]
    assert shapes.ranks["hostname"].iloc[0] == SECRET["hostname"]
    with pytest.raises(ValueError, match="cannot redact 'names'"):
        job.redacted("names")
    same_times = job.redacted("hosts").placements
    assert same_times == job.placements


def test_the_summary_is_bounded_and_counts_what_it_leaves_out(tmp_path):
    profile = synthetic_profile(30)
    manifests = {rank: manifest(rank, hostname="h" * 5_000) for rank in range(200)}
    job = Job(dict.fromkeys(range(200), profile), manifests)
    for size in (500, 8_000):
        for form in ("text", "json"):
            text = job.summary(size, form)
            assert len(text) <= size
            assert "left out" in text or "left_out" in text
    assert json.loads(job.summary(500, "json"))["left_out"]["ranks"] > 0
    assert "rank 199" in job.summary(10**6)
    for wrong in ({"max_chars": 10}, {"format": "xml"}):
        with pytest.raises(ValueError, match="must be"):
            job.summary(**wrong)


def test_the_json_of_a_job_has_no_control_characters(tmp_path):
    add_part(tmp_path, 0, hostname="node\x9b31m\u202e\x1b")
    text = epprof_nb.load(tmp_path).summary(format="json")
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text)["ranks"][0]["hostname"] == "node\x9b31m\u202e\x1b"
