"""Children that listen and a process that profiles a cell, without a notebook between them."""

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import pytest

from epprof_nb.core.options import Options
from epprof_nb.jobs.running.descendant_processes import descendants, read_process
from epprof_nb.jobs.running.order_to_listen import OrderToListen, order_to_listen
from epprof_nb.jobs.running.private_folder import listening, socket_path
from epprof_nb.notebook.cell_processes import ChildProcesses
from epprof_nb.profiles import Profile
from epprof_nb.recording.children.order_to_children import ORDER_FILE, VARIABLE, Order
from epprof_nb.recording.samples.availability import why_no_samples
from tests.helpers.parts import read_part
from tests.unit.jobs.time_namespaces import in_other_namespace, needs_namespaces

ENGINE = """
import os, sys
import numpy as np
from epprof_nb import host
x = host.to_device(np.ones(100, np.float32))
y = host.empty(x.shape, x.dtype)
def work(n):
    for _ in range(n):
        host.launch(np.sqrt, x, y)
    host.synchronize()
"""
SERVE = """
print("ready", flush=True)
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


class Engine:
    """A Python child that runs the lines which it is sent."""

    def __init__(self, order, source=ENGINE):
        self.process = subprocess.Popen(
            [sys.executable, "-c", source + SERVE],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        assert self.process.stdout.readline() == "ready\n"

    def send(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def run(self, line):
        self.send(line)
        assert self.process.stdout.readline() == "done\n"


@pytest.fixture
def order():
    order = OrderToListen()
    order.give("test")
    yield order
    order.close()


@pytest.fixture
def engine(order):
    started = []

    def start(source=ENGINE):
        started.append(Engine(order, source))
        return started[-1]

    yield start
    for each in started:
        with suppress(ProcessLookupError):
            os.killpg(each.process.pid, signal.SIGKILL)  # also what it has forked
        each.process.communicate()


def parts_of(children):
    """Return the profile of each part by pid."""
    parts = [read_part(f.parent) for f in Path(children.cell.folder).glob("*/manifest.json")]
    return {manifest.pid: (data, manifest) for data, manifest in parts}


def kernels_of(data):
    return int((Profile.from_data(data).activities["kind"] == "kernel").sum())


def reasons(unrecorded, pids):
    return {u.process.pid: u.reason for u in unrecorded if u.process.pid in pids}


def test_work_of_each_cell_is_in_its_part(order, engine):
    engines = [engine(), engine()]
    pids = [each.process.pid for each in engines]
    assert set(pids) <= set(listening(order._folder))
    for k in range(2):
        engines[0].run("work(100)")  # between cells
        children = order.children_of_cell(Options())
        children.begin()
        engines[0].run(f"work({5 + k})")
        engines[1].run(f"work({50 + k})")
        children.send_end(time.monotonic_ns())
        assert reasons(children.collect(), pids) == {}
        parts = parts_of(children)
        assert [kernels_of(parts[pid][0]) for pid in pids] == [5 + k, 50 + k]
        assert parts[pids[0]][1].followed == "running"


@pytest.mark.skipif(why_no_samples() is not None, reason="the host cannot be sampled")
def test_the_first_thread_of_a_running_child_is_sampled_without_ops(order, engine):
    child = engine(f"{ENGINE}\ndef spin():\n    return sum(range(30_000_000))\n")
    pid = child.process.pid
    children = order.children_of_cell(Options())
    children.begin()
    child.run("spin()")
    children.send_end(time.monotonic_ns())
    assert reasons(children.collect(), [pid]) == {}
    prof = Profile.from_data(parts_of(children)[pid][0])
    assert set(prof.host_samples["thread_id"]) == {pid}
    assert "spin" in set(prof.host_samples["function"])


def test_only_this_user_can_enter_and_only_the_notebook_is_obeyed(order, engine):
    pid = engine().process.pid
    assert stat.S_IMODE(order._folder.stat().st_mode) == 0o700
    path = os.fspath(socket_path(order._folder, pid))
    stranger = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
        "print(s.recv(10))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", stranger, path], capture_output=True, text=True, check=True,
        env={**os.environ, "EPPROF_CHILDREN": ""},
    )  # fmt: skip
    assert answer.stdout == "b''\n"  # it was closed before anything was read
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(path)
        connection.sendall(b'{"do": "begin", "job_id": "a", "token": "guessed"}\n')
        assert connection.recv(10) == b""
    children = order.children_of_cell(Options())
    children.begin()
    children.send_end(time.monotonic_ns())
    assert reasons(children.collect(), [pid]) == {}


def test_a_child_that_keeps_the_gil_is_listed_and_follows_the_next_cell(order, engine):
    busy = engine(ENGINE + "import ctypes\n")
    pid = busy.process.pid
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)
    children = order.children_of_cell(Options())
    children.begin()
    children.send_end(time.monotonic_ns())
    assert "did not answer within 2 s" in reasons(children.collect(), [pid])[pid]
    os.kill(pid, signal.SIGCONT)
    busy.run("work(1)")
    children = order.children_of_cell(Options())
    children.begin()
    busy.run("work(3)")
    children.send_end(time.monotonic_ns())
    assert reasons(children.collect(), [pid]) == {}
    assert kernels_of(parts_of(children)[pid][0]) == 3


def until(condition):
    """Wait until a condition is met, at most a minute."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_children_state_their_progress_and_stopped_ones_delay_nobody(order, engine):
    busy, stopped = engine(), engine()
    pids = [busy.process.pid, stopped.process.pid]
    children = order.children_of_cell(Options())
    children.begin()
    assert children.progress() == dict.fromkeys(sorted(pids))
    os.kill(pids[1], signal.SIGSTOP)
    for done in (5, 12):
        busy.run(f"work({done if done == 5 else 7})")
        until(lambda done=done: (p := children.progress()[pids[0]]) and p.kernels == done)
    assert children.progress()[pids[0]].dropped == 0
    later = engine()  # it begins within the cell
    later.run("work(3)")
    until(lambda: (p := children.progress().get(later.process.pid)) and p.kernels == 3)
    os.kill(pids[1], signal.SIGCONT)
    stopped.run("work(2)")
    children.send_end(time.monotonic_ns())
    assert children.progress()[pids[0]].kernels == 12  # without another message
    pids.append(later.process.pid)
    assert reasons(children.collect(), pids) == {}
    assert [kernels_of(parts_of(children)[pid][0]) for pid in pids] == [12, 2, 3]


def test_a_child_that_is_killed_is_listed(order, engine):
    killed, other = engine(), engine()
    pids = [killed.process.pid, other.process.pid]
    children = order.children_of_cell(Options())
    children.begin()
    killed.send("os.kill(os.getpid(), 9)")
    killed.process.wait()
    other.run("work(2)")
    children.send_end(time.monotonic_ns())
    found = reasons(children.collect(), pids)
    assert list(found) == pids[:1]
    assert "ended while the cell ran" in found[pids[0]]
    assert kernels_of(parts_of(children)[pids[1]][0]) == 2
    children = order.children_of_cell(Options())
    children.begin()
    children.send_end(time.monotonic_ns())
    assert pids[0] not in reasons(children.collect(), pids)
    assert pids[0] not in listening(order._folder)


def test_a_child_that_begins_and_is_killed_within_the_cell_is_listed(order, engine):
    children = order.children_of_cell(Options())
    children.begin()
    pid = engine().process.pid
    (part,) = Path(children.cell.folder).glob(f"rank-*-{pid}")
    os.kill(pid, signal.SIGKILL)
    while read_process(pid) is not None:
        time.sleep(0.01)
    for journal in part.iterdir():  # the machine may have been slow
        journal.unlink()
    children.send_end(time.monotonic_ns())
    found = reasons(children.collect(), [pid])
    assert found == {pid: "ended while the cell ran, without writing its part"}
    assert not part.exists()


def test_pythons_without_a_gpu_library_that_ended_within_the_cell_are_listed(order):
    def run(*options, **named):
        with subprocess.Popen([sys.executable, *options, "-c", "import numpy"], **named) as child:
            return child.pid

    run()
    others = {
        process.pid for process in descendants(os.getpid())
    }  # a Jupyter server of other tests, for example
    children = order.children_of_cell(Options())
    children.begin()
    ended = [run(), run("-S"), run(env={**os.environ, VARIABLE: ""})]
    subprocess.run(["true"], check=True)
    children.send_end(time.monotonic_ns())
    found = {u.process.pid: (u.process.command[0], u.reason) for u in children.collect()}
    assert [pid for pid in found if pid not in others] == sorted(ended)
    assert [found[pid][0] for pid in ended] == [sys.executable] * 3
    no_library, no_startup_files, refused = (found[pid][1] for pid in ended)
    assert no_library == "no GPU library"
    assert "-S" in no_startup_files
    assert "EPPROF_CHILDREN was empty" in refused


def test_a_cell_that_is_given_up_ends_the_recording(order, engine):
    child = engine("from epprof_nb.recording.session.service import service\n" + ENGINE)
    children = order.children_of_cell(Options())
    children.begin()
    child.run("assert service.open_subscriptions == 1")
    children.close()
    child.run("while service.open_subscriptions: pass")
    assert parts_of(children) == {}


def test_a_forked_child_has_its_own_socket(order, engine):
    fork = textwrap.dedent("""
        to_child, to_parent = os.pipe(), os.pipe()
        def fork():
            if not os.fork():
                while os.read(to_child[0], 1) == b"w":
                    work(4)
                    os.write(to_parent[1], b"d")
                os._exit(0)
        def let_child_work():
            os.write(to_child[1], b"w")
            os.read(to_parent[0], 1)
    """)
    parent = engine(ENGINE + fork)
    before = set(listening(order._folder))
    parent.run("fork()")
    while not (born := set(listening(order._folder)) - before):
        assert parent.process.poll() is None
    children = order.children_of_cell(Options())
    children.begin()
    parent.run("let_child_work()")
    parent.run("work(2)")
    children.send_end(time.monotonic_ns())
    pids = [parent.process.pid, *born]
    assert reasons(children.collect(), pids) == {}
    parts = parts_of(children)
    assert [kernels_of(parts[pid][0]) for pid in pids] == [2, 4]
    assert parts[pids[1]][1].parent_pid == pids[0]


@pytest.mark.parametrize("ending", ["sys.exit()", "os.kill(os.getpid(), 15)"])
def test_a_child_that_begins_and_ends_within_the_cell_leaves_its_part(order, engine, ending):
    children = order.children_of_cell(Options())
    children.begin()
    child = engine()
    child.run("work(7)")
    child.send(ending)
    child.process.wait()
    children.send_end(time.monotonic_ns())
    pid = child.process.pid
    assert reasons(children.collect(), [pid]) == {}
    data, manifest = parts_of(children)[pid]
    assert (kernels_of(data), manifest.followed, manifest.state) == (7, "subprocess", "complete")


def test_workers_of_a_pool_that_is_terminated_leave_their_parts(order, engine):
    children = order.children_of_cell(Options())
    earlier = {int(p.name) for p in Path("/proc").glob("[0-9]*")}  # of other tests
    children.begin()
    pool = engine(ENGINE + "import multiprocessing\n")
    pool.run("context = multiprocessing.get_context('fork')")
    # A worker that starts after the other one has done all the work may end before it records.
    pool.run("started = context.Barrier(2).wait")
    pool.run("with context.Pool(2, started) as p: p.map(work, [3] * 6, chunksize=1)")
    children.send_end(time.monotonic_ns())
    assert not {u.process.pid for u in children.collect()} - earlier
    workers = [
        data for data, manifest in parts_of(children).values() if manifest.followed == "fork"
    ]
    assert len(workers) == 2
    assert sum(map(kernels_of, workers)) == 18


def test_a_listening_child_ends_to_listen_with_the_notebook(tmp_path):
    """The child runs on, without the thread and the socket."""
    notebook = textwrap.dedent("""
        import subprocess, sys
        from epprof_nb.jobs.running.order_to_listen import OrderToListen
        order = OrderToListen()
        order.give("test")
        source = sys.argv[1]
        child = subprocess.Popen([sys.executable, "-c", source], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        child.stdout.readline()
        print(order._folder, child.pid, flush=True)
        sys.stdin.read()
    """)
    look = (
        "import os\nprint(flush=True)\n"
        "while os.path.exists(os.path.dirname(os.environ['EPPROF_CHILDREN'])): pass\n"
        f"open({str(tmp_path / 'ended')!r}, 'w').close()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", notebook, ENGINE + look],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    folder, pid = process.stdout.readline().split()
    assert listening(Path(folder)) == [int(pid)]
    process.kill()
    process.communicate()
    while not (tmp_path / "ended").exists():
        assert Path(f"/proc/{pid}").exists() or (tmp_path / "ended").exists()
    assert not Path(folder).exists()


def test_folders_of_notebooks_that_were_killed_are_removed_by_the_next(order):
    killed = (
        "import os; from epprof_nb.jobs.running.order_to_listen import OrderToListen\n"
        "order = OrderToListen(); order.give('test'); print(order._folder, flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    process = subprocess.Popen([sys.executable, "-c", killed], stdout=subprocess.PIPE, text=True)
    abandoned = Path(process.communicate()[0].strip())
    assert abandoned.is_dir()
    other = OrderToListen()
    other.give("test")
    assert not abandoned.exists()
    assert order._folder.is_dir()
    other.close()


@needs_namespaces
def test_notebooks_in_other_containers_keep_their_folders(order):
    """A shared folder shows them under other pids and start times."""
    code = (
        "from epprof_nb.jobs.running.order_to_listen import order_to_listen\n"
        "order_to_listen.give('test')"
    )
    subprocess.run(in_other_namespace(sys.executable, "-c", code), check=True)
    assert order._folder.is_dir()


def test_the_order_is_withdrawn_with_its_last_holder(order):
    order.give("another")
    order.withdraw("test")
    assert os.environ[VARIABLE] == os.fspath(order._folder / ORDER_FILE)
    order.withdraw("another")
    assert VARIABLE not in os.environ


@pytest.mark.parametrize("is_held", [False, True])
def test_a_removed_folder_is_made_again(order, is_held):
    if not is_held:
        order.withdraw("test")
    shutil.rmtree(order._folder)
    order.give("another")
    assert Order.read(order._folder / ORDER_FILE).listen
    assert os.environ[VARIABLE] == os.fspath(order._folder / ORDER_FILE)


def test_a_cell_inside_another_withdraws_its_own_order_only():
    outer, inner = ChildProcesses(Options()), ChildProcesses(Options())
    try:
        outer.begin()
        inner.begin()
        inner.close()
        assert VARIABLE in os.environ
    finally:
        outer.close()
    assert VARIABLE not in os.environ
    order_to_listen.close()


def test_a_daemon_that_closes_all_descriptors_runs_on(order, engine, tmp_path):
    daemon, other = engine(), engine()
    daemon.send("import os; os.closerange(3, 1000)")
    daemon.process.stdout.readline()
    # Its own files get the numbers of what it has closed.
    daemon.run(f"files = [open(f'{tmp_path}/{{n}}', 'w') for n in range(20)]")
    children = order.children_of_cell(Options())
    children.begin()
    other.run("work(3)")
    children.send_end(time.monotonic_ns())
    assert daemon.process.pid in {u.process.pid for u in children.collect()}
    assert other.process.pid in parts_of(children)
    order.close()
    daemon.run("for n, f in enumerate(files): f.write(str(n)); f.close()")
    assert [(tmp_path / str(n)).read_text() for n in range(20)] == [str(n) for n in range(20)]
    daemon.send("raise SystemExit(7)")
    assert daemon.process.wait(60) == 7
