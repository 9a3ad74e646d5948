"""Jobs and profiles on storage that fsspec opens."""

from __future__ import annotations

import gc
import sys

import pytest

import epprof_nb
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.files.dataset.manifest import MANIFEST
from epprof_nb.jobs.job import Job
from epprof_nb.testing import synthetic_profile

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def url(request):
    url = f"memory://{request.node.name}/run/"
    yield url
    fsspec.filesystem("memory").rm("/", recursive=True)


@pytest.fixture
def job():
    return Job({rank: synthetic_profile(activities=50 + rank) for rank in range(3)})


def test_a_job_is_saved_and_loaded(url, job):
    job.save(url)
    copy = epprof_nb.load(url)
    assert [len(copy[rank].activities) for rank in copy] == [50, 51, 52]
    assert copy.is_complete
    folder = copy.processes[0].part.parent
    assert folder.is_dir()
    del copy
    gc.collect()
    assert not folder.exists()


def test_parts_of_another_job_are_not_mixed_up(url, job):
    job.save(url)
    with pytest.raises(FileExistsError, match="name a new folder"):
        job.save(url)


def test_a_file_is_not_a_folder_for_parts(job, tmp_path):
    (tmp_path / "run").write_bytes(b"other")
    with pytest.raises(FileExistsError, match=r"is a file, .*name a new folder"):
        job.save(f"file://{tmp_path}/run")
    assert (tmp_path / "run").read_bytes() == b"other"


def test_the_manifest_comes_last_so_that_half_a_part_is_unfinished(url, job, monkeypatch):
    system = fsspec.filesystem("memory")
    written = []

    def put_file(source, target, **more):
        if len(written) == 5:
            raise OSError("the storage is full")
        written.append(target)
        return original(source, target, **more)

    original = system.put_file
    monkeypatch.setattr(type(system), "put_file", staticmethod(put_file))
    with pytest.raises(OSError, match="full"):
        job.save(url)
    of_first = [path.rsplit("/", 1)[1] for path in written if "rank-00000" in path]
    assert of_first[-1] == MANIFEST
    monkeypatch.undo()
    copy = epprof_nb.load(url)
    assert copy.ranks["state"].tolist()[:2] == ["complete", "unfinished"]


def test_a_profile_is_loaded(url, job, tmp_path):
    job[0].save(tmp_path / "run.epprof")
    system = fsspec.filesystem("memory")
    system.put_file(str(tmp_path / "run.epprof"), "/here/run.epprof")
    assert len(epprof_nb.load("memory://here/run.epprof").activities) == 50


def test_only_files_of_parts_are_copied(url, job):
    job.save(url)
    system = fsspec.filesystem("memory")
    (part, *_) = (e["name"] for e in system.ls(url[len("memory:/") :]) if "rank-" in e["name"])
    system.pipe_file(f"{part}/evil.py", b"print()")
    system.pipe_file(f"{part}/journal.bin", b"x")
    copy = epprof_nb.load(url)
    names = {file.name for file in copy.processes[0].part.iterdir()}
    assert "evil.py" not in names
    assert "journal.bin" not in names


def test_parts_larger_than_the_limit_and_missing_urls_are_refused(url, job):
    with pytest.raises((ProfileFileError, FileNotFoundError)):
        epprof_nb.load(url)
    job.save(url)
    with pytest.raises(ProfileFileError, match="raise max_bytes"):
        epprof_nb.load(url, max_bytes=1_000)


def test_without_fsspec_the_error_says_what_to_install(job, monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ImportError, match="pip install fsspec"):
        job.save("s3://bucket/run/")
