"""Parts of workers: where they are, and how they reach the notebook."""

from __future__ import annotations

import errno
import pickle

import pytest

import epprof_nb
from epprof_nb.files.dataset import part as part_file
from epprof_nb.jobs.dask import limits, parts_of_workers, recording
from epprof_nb.jobs.dask.messages import Messages
from tests.helpers.dask_clusters import open_sessions, pids, wait_until
from tests.helpers.dask_tasks import work

pytest.importorskip("distributed")


def test_the_temporary_folder_lives_as_long_as_the_job(client):
    with epprof_nb.cluster(client).profile() as job:
        client.submit(work, 1, pure=False).result()
    folder = job.processes[0].part.parent
    assert folder.is_dir()
    assert not (folder / "order.json").exists()
    del job
    wait_until(lambda: not folder.exists())


def test_parts_in_a_given_folder_stay(client, tmp_path):
    with epprof_nb.cluster(client).profile(folder=tmp_path / "run") as job:
        client.submit(work, 1, pure=False).result()
    del job
    assert len(epprof_nb.load(tmp_path / "run")) == 3
    with (
        pytest.raises(FileExistsError, match="name a new folder"),
        epprof_nb.cluster(client).profile(folder=tmp_path / "run"),
    ):
        pass
    assert open_sessions(client) == 0


def test_workers_without_the_storage_send_their_part(client, monkeypatch):
    """Piece by piece, and past the scheduler, whose messages do not grow with the part."""
    sizes, run = [], Messages.run

    async def measured(*args):
        result = await run(*args)
        sizes.append(len(pickle.dumps(result)))
        return result

    monkeypatch.setattr(recording.Order, "write", lambda order, path: None)
    monkeypatch.setattr(limits, "PIECE_BYTES", 10_000)
    monkeypatch.setattr(Messages, "run", measured)
    with epprof_nb.cluster(client).profile() as job:
        ran_in = client.gather(client.map(work_often, range(4), pure=False))
    assert job.is_complete, job.ranks
    assert job.by_task()["kernels"].tolist() == [2_000]
    assert {len(job[r].ops[job[r].ops["op_type"] == "task"]) for r in (1, 2)} == {
        ran_in.count(pid) for pid in pids(client)
    }
    files = [file.stat().st_size for file in job.processes[1].part.iterdir()]
    assert max(sizes) < 4_000 < limits.PIECE_BYTES < max(files)
    assert not any(client.run(kept_recordings).values())


def kept_recordings():
    from epprof_nb.jobs.dask import worker

    return len(worker._recordings)


def work_often(x):
    for _ in range(499):
        work(x)
    return work(x)


def test_a_part_whose_storage_fails_is_sent(client):
    """The disk of the job is full when the workers write their parts."""
    with epprof_nb.cluster(client).profile() as job:
        client.gather(client.map(work, range(10), pure=False))
        client.run(fail_in_jobs)
    client.run(end_failing)
    assert job.is_complete, job.ranks
    assert job.by_task()["kernels"].tolist() == [10]


def fail_in_jobs():
    import errno

    from epprof_nb.files.dataset import part

    original = part.replacing

    def replacing(path):
        if "epprof-cluster-" in str(path):
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(path)

    replacing.original = original
    part.replacing = replacing


def end_failing():
    from epprof_nb.files.dataset import part

    part.replacing = part.replacing.original


@pytest.fixture
def full_disk(monkeypatch):
    """Files of parts cannot be written in this process, not even the reason why."""

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(part_file, "replacing", full)


@pytest.mark.usefixtures("full_disk")
def test_without_the_part_of_the_notebook_the_job_has_the_others(client, tmp_path):
    with epprof_nb.cluster(client).profile(folder=tmp_path / "run") as job:
        client.gather(client.map(work, range(10), pure=False))
    own = job.ranks.loc[0]
    assert own["followed"] == "cell"
    assert own["state"] == "not recorded"
    assert own["reason"] == (
        "its part could not be written (OSError: [Errno 28] No space left on device)"
    )
    assert [*job] == [1, 2]
    assert job.by_task()["kernels"].tolist() == [10]
    assert "1 of 3 processes has no profile (rank 0)" in job.summary()


@pytest.mark.usefixtures("full_disk")
def test_the_exception_of_the_block_comes_through_without_a_part(client, tmp_path):
    with (
        pytest.raises(KeyError, match="mine"),
        epprof_nb.cluster(client).profile(folder=tmp_path / "run") as job,
    ):
        raise KeyError("mine")
    assert [*job] == [1, 2]


def test_an_error_without_a_job_is_a_note_of_the_exception_of_the_block(client, monkeypatch):
    def fail(*_, **__):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(recording, "load_job", fail)
    with (
        pytest.raises(KeyError, match="mine") as raised,
        epprof_nb.cluster(client).profile() as job,
    ):
        raise KeyError("mine")
    assert raised.value.__notes__ == [
        "The profiles of the cluster are lost (OSError: [Errno 5] Input/output error)."
    ]
    assert not len(job)
    assert open_sessions(client) == 0


def test_a_part_that_cannot_be_written_here_says_so(client, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(recording.Order, "write", lambda order, path: None)
    monkeypatch.setattr(parts_of_workers, "new_part_folder", full)
    with epprof_nb.cluster(client).profile() as job:
        client.submit(work, 1, pure=False).result()
    reason = "its part could not be written (OSError: [Errno 28] No space left on device)"
    assert [*job] == [0]
    assert job.ranks["reason"].tolist()[1:] == [reason, reason]
