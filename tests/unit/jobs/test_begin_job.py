"""Begin of a job in a folder that has something in it already."""

import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from epprof_nb import load
from epprof_nb.core.options import Options
from epprof_nb.files.dataset.manifest import MANIFEST
from epprof_nb.jobs import launcher_environment
from epprof_nb.jobs.begin_job import FolderInUseError, begin_job, is_over
from epprof_nb.recording.children.order_to_children import ORDER_FILE, VARIABLE, Order
from epprof_nb.recording.children.proc_filesystem import start_ticks
from tests.helpers.jobs import add_part


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                 "SLURM_JOB_ID"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def running():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.communicate()


def test_parts_of_an_earlier_job_are_replaced(tmp_path):
    part = add_part(tmp_path, 3, pid=2**22 + 1)
    _, own = begin_job(tmp_path, Options())
    assert not part.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == [ORDER_FILE, own.folder.name]


@pytest.mark.parametrize("world_size", ["0", "xyz"])
def test_a_number_of_ranks_that_is_none_is_ignored(tmp_path, monkeypatch, world_size):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", world_size)
    _, own = begin_job(tmp_path, Options())
    own.write_unrecorded("it is a test")
    assert load(tmp_path).ranks["state"].tolist() == ["not recorded"]


@pytest.mark.parametrize(
    ("rank", "world_size", "kept"),
    [(1, 2, True), (0, 2, False), (1, 3, False)],
)
def test_a_rank_of_another_shell_keeps_the_part_of_one_that_has_ended(
    tmp_path, monkeypatch, rank, world_size, kept
):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    order, first = begin_job(tmp_path, Options())
    first.write_unrecorded("it is a test")
    boot, _, _, *stated = order.launch.split(" ")
    replace(order, launch=" ".join([boot, "7", "8", *stated])).write(tmp_path / ORDER_FILE)
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("WORLD_SIZE", str(world_size))
    joined, _ = begin_job(tmp_path, Options())
    assert (joined.job_id == order.job_id) == kept
    assert (first.folder / MANIFEST).exists() == kept


def test_hosts_of_one_run_state_the_same_id(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    found = []
    for run_id, rank in (("run7", 0), ("run7", 1), ("run8", 1), ("none", 0), ("", 0)):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", run_id)
        found.append(launcher_environment.run_id())
    assert found[0] == found[1] != found[2]
    assert found[3:] == ["", ""]


def run(command, **variables):
    environment = {**os.environ, **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def test_an_order_of_a_job_that_is_over_is_ignored(tmp_path, running):
    imports = "import sys; from epprof_nb.core.options import Options"
    begins = "from epprof_nb.jobs.begin_job import *; begin_job(Path(sys.argv[1]), Options())"
    begins = f"{imports}; {begins}"
    run([sys.executable, "-c", begins, str(tmp_path)])
    for part in (*tmp_path.glob("rank*"), tmp_path):
        os.utime(part, (1, 1))
    order = tmp_path / ORDER_FILE
    follows = [sys.executable, "-c", "import numpy"]
    job = Order.read(order)
    live = tmp_path / f"rank-none-{running}"
    live.mkdir()
    os.utime(tmp_path, (1, 1))
    assert not is_over(job)  # one of its processes records
    live.rmdir()
    assert not is_over(job)  # it has just ended
    os.utime(tmp_path, (1, 1))
    assert not is_over(replace(job, namespace="pid:[1]"))
    assert not is_over(
        replace(job, creator_pid=os.getpid(), creator_start=start_ticks(os.getpid()))
    )
    assert is_over(job)
    for _ in range(2):
        done = run(follows, **{VARIABLE: str(order)})
        assert (done.stdout, done.stderr) == ("", "")
        assert not order.exists()
    assert len([*tmp_path.iterdir()]) == 1


def test_files_of_others_remain(tmp_path):
    part = add_part(tmp_path, 3, pid=2**22 + 1)
    (part / "results.parquet").write_text("mine")
    begin_job(tmp_path, Options())
    assert [path.name for path in part.iterdir()] == ["results.parquet"]


def test_files_behind_a_link_remain(tmp_path):
    job = tmp_path / "run"
    elsewhere = add_part(tmp_path / "other", 3)
    before = sorted(elsewhere.iterdir())
    job.mkdir()
    (job / elsewhere.name).symlink_to(elsewhere)
    begin_job(job, Options())
    assert sorted(elsewhere.iterdir()) == before


def test_a_part_that_records_is_in_use(tmp_path, running):
    (tmp_path / f"rank-none-{running}").mkdir()
    with pytest.raises(FolderInUseError, match=f"process {running} records"):
        begin_job(tmp_path, Options())


def test_a_later_process_with_the_same_pid_does_not_record(tmp_path, running):
    begun = time.time() - 60
    for pid in (running, os.getpid()):
        part = tmp_path / f"rank-none-{pid}"
        part.mkdir()
        os.utime(part, (begun, begun))
    _, own = begin_job(tmp_path, Options())
    assert [path.name for path in tmp_path.glob("rank-*")] == [own.folder.name]
    assert not (own.folder / MANIFEST).exists()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"options": {"detail": 5}}', '{"options": {"max_records": -1}}', "[" * 10**5],
)
def test_a_damaged_order_is_replaced(tmp_path, text):
    (tmp_path / ORDER_FILE).write_text(text)
    order, _ = begin_job(tmp_path, Options())
    assert Order.read(tmp_path / ORDER_FILE) == order


def test_a_pipe_is_no_order(tmp_path):
    os.mkfifo(tmp_path / ORDER_FILE)
    order, _ = begin_job(tmp_path, Options())
    assert Order.read(tmp_path / ORDER_FILE) == order
