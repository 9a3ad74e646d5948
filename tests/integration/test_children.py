"""``epprof run --children``: each Python process that a script starts writes its part of a job."""

import inspect
import json
import subprocess
import sys

import pytest
from scripts import RUN, execute, execute_in_fork

import epprof_nb
from epprof_nb.files.dataset.part import read_manifest
from epprof_nb.jobs.killed_processes import complete_killed
from tests.helpers import cuda_stand_in
from tests.helpers.parts import read_part

WORK = """
def work(name, times=1):
    import numpy as np
    from epprof_nb import host
    x = host.to_device(np.ones((8, 8), np.float32))
    for _ in range(times):
        host.launch(np.add, x, x, x, name=name)
    host.synchronize()
"""


def wait_for_journal(path):
    import time

    from epprof_nb.recording.children.journal_reading import KilledRecording

    deadline = time.monotonic() + 120
    while True:
        try:
            return KilledRecording(path)
        except Exception:
            assert time.monotonic() < deadline
            time.sleep(0.05)


HEAD = f"""
import multiprocessing, os, signal, subprocess, sys, time
{WORK}{inspect.getsource(wait_for_journal)}
WORK = {WORK!r}
def run(code, *options, **named):
    return subprocess.run([sys.executable, *options, "-c", WORK + code], check=True, **named)
"""


@pytest.fixture
def job(tmp_path):
    """Run a script with its children; return the result and its parts."""

    def job(source, *options, code=0):
        (tmp_path / "job.py").write_text(HEAD + source, encoding="utf-8")
        command = [*RUN, "--children", "--out", "run/", *options, "job.py"]
        done = execute_in_fork(command, tmp_path)
        assert done.returncode == code, done.stderr
        assert done.stderr == ""
        return parts(tmp_path / "run")

    return job


def parts(folder):
    """Return the kernels of each finished part, its manifest and its name."""
    found = []
    for path in sorted(folder.glob("rank-*")):
        data, manifest = read_part(path)
        rows = data.activities
        names = rows.loc[rows["kind"] == "kernel", "name"].tolist()
        found.append((names, manifest, path.name))
    return found


def kernels_by_origin(found):
    return sorted((m.followed, names) for names, m, _ in found if m.followed != "run")


def test_another_python_writes_its_part(job):
    found = job('run("work(\'child\', 3)")\nwork("parent")')
    assert sorted((m.followed, m.state, names) for names, m, _ in found) == [
        ("run", "complete", ["parent"]),
        ("subprocess", "complete", ["child"] * 3),
    ]
    (parent,) = [m for _, m, _ in found if m.followed == "run"]
    (child,) = [m for _, m, _ in found if m.followed == "subprocess"]
    assert child.parent_pid == parent.pid
    assert child.job_id == parent.job_id
    assert child.command[0] == sys.executable
    assert parent.begin_ns < child.begin_ns < child.end_ns <= parent.end_ns


def test_the_startup_hook_works_under_options_of_python(job):
    options = ["-I", "-E", "-B"]
    found = job(f"for option in {options}: run(f'work({{option!r}})', option)")
    assert kernels_by_origin(found) == [("subprocess", [option]) for option in sorted(options)]


def test_a_child_with_an_environment_of_its_own_follows(job):
    assert kernels_by_origin(job("run(\"work('child')\", env={})")) == [("subprocess", ["child"])]


def test_a_child_that_does_not_record_is_listed_with_the_reason(job):
    found = job("""
run("1", "-S")
run("1", "-IS")
run("1", env={"EPPROF_CHILDREN": ""})
run("1")
""")
    children = [m for _, m, _ in found if m.followed != "run"]
    assert {child.state for child in children} == {"not recorded"}
    expected = {"-S": 2, "empty in its environment": 1, "imported no GPU library": 1}
    assert len(children) == sum(expected.values())
    for part, count in expected.items():
        assert sum(part in child.reason for child in children) == count


def test_the_summary_of_a_run_is_that_of_all_processes(tmp_path):
    source = "run(\"work('child', 3)\")\nwork('parent')"
    (tmp_path / "job.py").write_text(HEAD + source, encoding="utf-8")
    command = [part for part in RUN if part != "--quiet"]
    done = execute_in_fork([*command, "--children", "--out", "run/", "job.py"], tmp_path)
    assert done.stderr.startswith("job of 2 processes ")
    assert "\nprocess 1  " in done.stderr
    assert done.stderr.splitlines()[-1].startswith("Wrote ")


def test_a_python_without_the_package_is_listed(job, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "other"], check=True)
    other = str(tmp_path / "other/bin/python")
    found = job(f'assert subprocess.run([{other!r}, "-c", "print(1)"]).returncode == 0')
    (child,) = [m for _, m, _ in found if m.followed != "run"]
    assert child.state == "not recorded"
    assert f"{other} -m pip install" in child.reason


def test_a_process_of_multiprocessing_writes_its_part(job):
    found = job(
        """
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        process = multiprocessing.get_context(method).Process(target=work, args=(method, 2))
        process.start()
        process.join()
        assert process.exitcode == 0
"""
    )
    assert kernels_by_origin(found) == [
        ("fork", ["fork"] * 2), ("forkserver", ["forkserver"] * 2), ("subprocess", ["spawn"] * 2),
    ]  # fmt: skip


def test_a_forkserver_of_before_passes_on_the_order(job):
    """Its environment is that of its own start."""
    found = job(
        """
if __name__ == "__main__":
    from multiprocessing import forkserver
    order = os.environ.pop("EPPROF_CHILDREN")
    forkserver.ensure_running()
    os.environ["EPPROF_CHILDREN"] = order
    process = multiprocessing.get_context("forkserver").Process(target=work, args=("child",))
    process.start()
    process.join()
"""
    )
    assert kernels_by_origin(found) == [("forkserver", ["child"])]


def test_workers_of_pools_write_their_parts_though_they_are_terminated(job):
    found = job(
        """
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.map(work, ["child"] * 3)
"""
    )
    assert kernels_by_origin(found) == [("fork", ["child"] * 3)]


def test_a_forked_child_that_forks_again_and_its_child_write_parts(job):
    found = job(
        """
def outer():
    work("outer")
    inner = multiprocessing.get_context("fork").Process(target=work, args=("inner",))
    inner.start()
    inner.join()
if __name__ == "__main__":
    process = multiprocessing.get_context("fork").Process(target=outer)
    process.start()
    process.join()
"""
    )
    assert kernels_by_origin(found) == [("fork", ["inner"]), ("fork", ["outer"])]


def test_a_forked_child_keeps_its_ending_and_writes_its_part(job):
    found = job(
        """
endings = {
    "sys.exit(3)": 3,
    "raise SystemExit(4)": 4,
    "os._exit(5)": 5,
    "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)": -signal.SIGTERM,
}
for end, status in endings.items():
    child = os.fork()
    if child == 0:
        work(end)
        exec(end)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == status
"""
    )
    kernels = [names for _, names in kernels_by_origin(found)]
    assert [len(names) for names in kernels] == [1] * 4
    assert {name.split("(")[0] for (name,) in kernels} == {
        "sys.exit", "raise SystemExit", "os._exit", "os.kill",
    }  # fmt: skip


def test_a_child_that_runs_a_program_before_it_execs_writes_no_part(job):
    found = job('work("parent")\nsubprocess.run(["true"], preexec_fn=os.getpid, check=True)')
    assert [names for names, _, _ in found] == [["parent"]]


LATE_RANK = """
import time
from torch import distributed as dist
import epprof_nb, torch
dist.init_process_group("gloo")
for _ in range(30):
    with epprof_nb.op("augment"):
        time.sleep(0.02 * (dist.get_rank() == 1))
    dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
"""


def test_ranks_of_one_launch_write_into_one_job_and_the_last_names_the_straggler(tmp_path):
    pytest.importorskip("torch.distributed.run")
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2",
        "-m", "epprof_nb", "run", "--out", "run/", "train.py",
    ]  # fmt: skip
    jobs = []
    for more in ("", LATE_RANK):  # the second launch replaces the job of the first
        source = f"{WORK}\nimport os\nwork('rank' + os.environ['RANK'])\n{more}"
        (tmp_path / "train.py").write_text(source)
        done = execute(command, tmp_path)
        assert done.returncode == 0, done.stderr
        found = parts(tmp_path / "run")
        assert [(m.rank, m.world_size, names) for names, m, _ in found] == [
            (0, 2, ["rank0"]), (1, 2, ["rank1"]),
        ]  # fmt: skip
        jobs.append({m.job_id for _, m, _ in found})
    assert [len(ids) for ids in jobs] == [1, 1]
    assert jobs[0] != jobs[1]
    said = [text for text in done.stderr.splitlines() if text.endswith("` has more.")]
    assert len(said) == 1, done.stderr
    assert said[0].startswith("Rank 1 was late")


def test_a_folder_that_a_running_job_uses_is_refused(tmp_path):
    (tmp_path / "wait.py").write_text("print(1, flush=True)\ninput()")
    (tmp_path / "other.py").write_text("print('ran')")
    options = ["--children", "--out", "run"]
    first = subprocess.Popen(
        [*RUN, *options, "wait.py"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert first.stdout.readline() == b"1\n"
    second = execute([*RUN, *options, "other.py"], tmp_path)
    first.communicate(b"\n")
    assert second.returncode == 2
    assert "is in use" in second.stderr
    assert second.stdout == ""
    (part,) = (tmp_path / "run").glob("rank-*")
    assert read_manifest(part).pid == first.pid
    order = json.loads((tmp_path / "run/order.json").read_text())
    assert order["job_id"] == read_manifest(part).job_id


def test_a_killed_child_leaves_what_its_journal_has(tmp_path):
    (tmp_path / "job.py").write_text(
        HEAD
        + """
child = subprocess.Popen([sys.executable, "-c", WORK + "work('child', 3); input()"],
                         stdin=subprocess.PIPE)
from pathlib import Path
wait_for_journal(Path(f"run/rank-none-{child.pid}/journal.arrow"))
child.kill()
assert child.wait() == -signal.SIGKILL
""",
        encoding="utf-8",
    )
    done = execute_in_fork([*RUN, "--children", "--out", "run", "job.py"], tmp_path)
    assert done.returncode == 0, done.stderr
    job = epprof_nb.load(tmp_path / "run")
    assert sorted(job.ranks["state"]) == ["complete", "killed"]
    (found,) = [(names, m) for names, m, _ in parts(tmp_path / "run") if m.followed == "subprocess"]
    assert found[0] == ["child"] * 3
    assert found[1].state == "killed"
    assert "journal" in found[1].reason
    assert not [*tmp_path.glob("run/*/journal.arrow")]


def test_a_journal_of_a_running_process_is_left_alone(tmp_path):
    source = "import numpy, os, signal, time\nprint(os.getpid(), flush=True)\ninput()"
    (tmp_path / "wait.py").write_text(source)
    command = [*RUN, "--children", "--out", "run", "wait.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        pid = int(running.stdout.readline())
        part = tmp_path / f"run/rank-none-{pid}"
        wait_for_journal(part / "journal.arrow")
        assert not complete_killed(part)
        running.communicate(b"\n")
    assert read_manifest(part).state == "complete"


def test_a_child_that_was_forked_after_cuda_had_started_is_listed(job, tmp_path):
    found = job(
        f"""
import ctypes
driver = ctypes.CDLL({str(cuda_stand_in.build(tmp_path))!r}, mode=ctypes.RTLD_GLOBAL)
def child(name):
    pid = os.fork()
    if pid == 0:
        work(name)
        os._exit(0)
    os.waitpid(pid, 0)
child("before")
driver.start()
child("after")
"""
    )
    states = sorted((m.state, names) for names, m, _ in found if m.followed == "fork")
    assert states == [("complete", ["before"]), ("not recorded", [])]
    (reason,) = [m.reason for _, m, _ in found if m.state == "not recorded"]
    assert "started CUDA" in reason
    assert "'spawn'" in reason


def test_workers_of_a_data_loader_are_recorded(job):
    pytest.importorskip("torch")
    found = job(
        """
import torch
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        work(f"sample{i}")
        return torch.zeros(2)
if __name__ == "__main__":
    assert len(list(torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2))) == 4
"""
    )
    workers = [names for names, m, _ in found if m.followed == "fork"]
    assert sorted(name for names in workers for name in names) == [f"sample{i}" for i in range(8)]
    assert len(workers) == 2


def test_many_children_at_once_write_their_parts(job):
    found = job(
        """
code = WORK + "work('child')"
children = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
assert all(child.wait() == 0 for child in children)
"""
    )
    assert kernels_by_origin(found) == [("subprocess", ["child"])] * 3


def test_a_child_that_profiles_itself_is_recorded_too(job):
    code = """
import epprof_nb
{}
with epprof_nb.profile() as prof, epprof_nb.op("own"):
    work("child")
assert (prof.activities["name"] == "child").sum() == 1
"""
    imported = ["", "import numpy", "from epprof_nb import host"]
    found = job(f"for before in {imported}: run({code!r}.format(before))")
    assert kernels_by_origin(found) == [("subprocess", ["child"])] * 3


def test_a_signal_during_an_import_ends_a_child(job):
    found = job('''
code = """
import os, signal, sys
class Terminates:
    def find_spec(name, path=None, target=None):
        if name == NAME and Terminates in sys.meta_path:
            sys.meta_path.remove(Terminates)
            os.kill(os.getpid(), signal.SIGTERM)
NAME = "epprof_nb.files.dataset.manifest"
assert NAME not in sys.modules
sys.meta_path.insert(0, Terminates)
__import__(NAME)
signal.pause()
"""
child = subprocess.run([sys.executable, "-c", code], timeout=60)
assert child.returncode == -signal.SIGTERM, child
''')
    assert [m.state for _, m, _ in found if m.followed == "subprocess"] == ["not recorded"]


def test_a_forked_child_that_executes_another_program_has_one_part(job):
    found = job("""
child = os.fork()
if not child:
    os.execv(sys.executable, [sys.executable, "-c", WORK + "work('executed')"])
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
""")
    assert kernels_by_origin(found) == [("subprocess", ["executed"])]


def test_a_child_whose_part_cannot_be_written_is_listed_and_frees_the_space(tmp_path):
    (tmp_path / "job.py").write_text(
        HEAD
        + """
code = WORK + '''
import epprof_nb, os, resource
work("child")
for _ in range(300):
    with epprof_nb.op(os.urandom(32).hex()):
        pass
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))  # as a full disk
'''
assert subprocess.run([sys.executable, "-c", code]).returncode == 0
work("parent")
""",
        encoding="utf-8",
    )
    done = execute_in_fork([*RUN, "--children", "--out", "run", "job.py"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "could not be written" in done.stderr
    job = epprof_nb.load(tmp_path / "run")
    child = job.ranks[job.ranks["followed"] == "subprocess"].iloc[0]
    assert child["state"] == "not recorded"
    assert "its part could not be written" in child["reason"]
    (part,) = (tmp_path / "run").glob(f"rank-none-{child['pid']}")
    assert [path.name for path in part.iterdir()] == ["manifest.json"]
    assert "so totals do not cover the whole job" in job.by_rank().attrs["note"]
