"""Child processes on a GPU: a session leaves CUDA alone, so that forked children can start it."""

import subprocess
import sys

import pytest

from tests.helpers.parts import read_part

pytest.importorskip("torch", reason="PyTorch is not installed")

WORK = """
import ctypes, multiprocessing, os, subprocess, sys
import torch

def work(name):
    x = torch.ones(64, 64, device="cuda")
    for _ in range(3):
        x = x @ x
    torch.cuda.synchronize()

def started():
    count = ctypes.c_int()
    return ctypes.CDLL("libcuda.so.1").cuDeviceGetCount(ctypes.byref(count)) == 0

def child(method):
    process = multiprocessing.get_context(method).Process(target=work, args=(method,))
    process.start()
    process.join()
    assert process.exitcode == 0
"""


def job(tmp_path, source):
    (tmp_path / "job.py").write_text(WORK + source)
    command = [sys.executable, "-m", "epprof_nb", "run", "-q", "--children", "--out", "run"]
    done = subprocess.run(
        [*command, "job.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = {}
    for path in (tmp_path / "run").glob("rank-*"):
        data, manifest = read_part(path)
        kinds = data.activities["kind"]
        found[manifest.followed] = manifest.state, int((kinds == "kernel").sum()), manifest.reason
    return found


def test_a_session_does_not_start_cuda(tmp_path):
    found = job(tmp_path, "assert not started()\nwork('parent')\nassert started()\n")
    assert found["run"][1] >= 3


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_child_of_before_cuda_is_recorded_and_so_is_its_parent(tmp_path, method):
    found = job(
        tmp_path, f"if __name__ == '__main__':\n    child({method!r})\n    work('parent')\n"
    )
    assert found["run"][1] >= 3
    state, kernels, _ = found["subprocess" if method == "spawn" else method]
    assert state == "complete"
    assert kernels >= 3


def test_children_and_their_parent_are_recorded_after_an_earlier_profile(tmp_path):
    source = """
import epprof_nb

with epprof_nb.profile():
    pass  # starts CUPTI, but not CUDA
pids = []
for number in range(3):
    if (pid := os.fork()) == 0:
        with epprof_nb.profile() as prof:
            work('child')
        os._exit(0 if len(prof.activities) >= 3 else 1)
    pids.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0, 0]
with epprof_nb.profile() as prof:
    work('parent')
kernels = prof.activities[prof.activities["kind"] == "kernel"]
assert len(kernels) >= 3
assert (kernels["start_ns"] > 0).all()
assert (kernels["end_ns"] <= prof.info["wall_ns"]).all()
"""
    path = tmp_path / "program.py"
    path.write_text(WORK + source)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_child_that_was_forked_after_cuda_had_started_is_listed_with_the_reason(tmp_path):
    source = """
work('parent')
pid = os.fork()
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
"""
    state, kernels, reason = job(tmp_path, source)["fork"]
    assert (state, kernels) == ("not recorded", 0)
    assert "spawn" in reason


def test_ranks_on_one_gpu_write_their_kernels(tmp_path):
    (tmp_path / "train.py").write_text(WORK + "work('rank')")
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2",
        "-m", "epprof_nb", "run", "-q", "--out", "run", "train.py",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    parts = [read_part(path) for path in sorted((tmp_path / "run").glob("rank-*"))]
    assert [manifest.rank for _, manifest in parts] == [0, 1]
    for data, _ in parts:
        assert (data.activities["kind"] == "kernel").sum() >= 3
