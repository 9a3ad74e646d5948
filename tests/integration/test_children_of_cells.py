"""``%%gpuprofile job --children`` in kernels: children of the cell and of earlier cells."""

from __future__ import annotations

import json
import os
import signal
import textwrap

import pytest

from tests.helpers.jupyter_kernels import running_kernel

MODULE = """
import ctypes, os
import numpy as np

def work(n):
    from epprof_nb import host
    x = host.to_device(np.ones(100, np.float32))
    y = host.empty(x.shape, x.dtype)
    for _ in range(n):
        host.launch(np.sqrt, x, y)
    host.synchronize()
    return os.getpid()

def engine(requests):
    while True:
        function, argument = requests.recv()
        requests.send(function(argument))

def keep_the_gil(fifo):
    wait_for_the_end(fifo, ctypes.PyDLL)

def leave_the_gil(fifo):
    wait_for_the_end(fifo, ctypes.CDLL)

def wait_for_the_end(fifo, library):
    file = os.open(fifo, os.O_RDONLY)
    library(None).read(file, ctypes.create_string_buffer(1), 1)
    os.close(file)

class Squares:
    def __len__(self):
        return 32
    def __getitem__(self, index):
        work(1)
        return index * index
"""
SETUP = """
import json, multiprocessing as mp, os, subprocess, sys, time
from concurrent.futures import ProcessPoolExecutor
sys.path.insert(0, {folder!r})
import work_of_children as w

class Engine:
    def __init__(self, how="spawn"):
        context = mp.get_context(how)
        self.end, other = context.Pipe()
        self.process = context.Process(target=w.engine, args=(other,), daemon=True)
        self.process.start()
        self.call(w.work, 1)
    def send(self, function, argument):
        self.end.send((function, argument))
    def call(self, function, argument):
        self.send(function, argument)
        return self.end.recv()

def shown(job):
    ranks = job.ranks.assign(reason=job.ranks["reason"].astype(object).fillna(""))
    kernels = job.by_rank()["kernels"]
    print(json.dumps([
        [int(r.pid), r.followed, r.state, r.reason, int(kernels.get(n, -1))]
        for n, r in ranks.iterrows()
    ]))
"""


class Notebook:
    def __init__(self, client, tmp_path, *, listen):
        (tmp_path / "work_of_children.py").write_text(MODULE)
        self.client = client
        self.errors = []
        self.pages = []  # displayed HTML
        self.run("%load_ext epprof_nb\n%config GpuProfile.quiet = True")
        if listen:
            self.run("%config GpuProfile.children = True")
        self.run(SETUP.format(folder=str(tmp_path)))
        self.pid = int(self.run("print(os.getpid())"))

    def run(self, cell, *, error=None, on_output=lambda _: None):
        """Run a cell and return what it has printed; `error` is the one in which it ends."""
        printed, errors = [], []

        def hook(message):
            content = message["content"]
            if message["msg_type"] == "stream":
                printed.append(content["text"])
                on_output(content["text"])
            elif "display_data" in message["msg_type"]:
                self.pages.append(content["data"].get("text/html", ""))
            elif message["msg_type"] == "error":
                errors.append(content["ename"])

        self.client.execute_interactive(textwrap.dedent(cell), output_hook=hook, timeout=300)
        assert errors == ([] if error is None else [error]), "".join(printed)
        return "".join(printed)

    def job(self, name="job"):
        """Return the processes of a job: pid, how it followed, state, reason and kernels."""
        return json.loads(self.run(f"shown({name})"))


@pytest.fixture
def notebook(tmp_path):
    with running_kernel() as client:
        yield Notebook(client, tmp_path, listen=True)


def test_the_job_is_shown_before_the_process_of_the_notebook(notebook):
    notebook.run("%config GpuProfile.quiet = False")
    notebook.run(
        """\
        %%gpuprofile job --children
        with ProcessPoolExecutor(1, mp_context=mp.get_context("spawn")) as pool:
            pool.submit(w.work, 3).result()
    """.replace(" " * 8, "")
    )
    job, own = notebook.pages
    assert "2 processes" in job
    assert "2 processes" not in own
    # A process did find a device.
    assert "No device work." in own
    assert "No GPU was found" not in own


def test_pools_and_an_engine_of_an_earlier_cell(notebook):
    notebook.run("""
        engine = Engine()
        pools = [
            ProcessPoolExecutor(2, mp_context=mp.get_context(how))
            for how in ("fork", "spawn", "forkserver")
        ]
        for pool in pools:
            pids = set()
            while len(pids) < 2:
                pids |= set(pool.map(w.work, [1] * 4))
    """)
    for factor in (1, 2):
        notebook.run(
            f"""\
            %%gpuprofile job --children
            w.work(7)
            engine.call(w.work, {5 * factor})
            for pool in pools:
                list(pool.map(w.work, [{factor}] * 6))
        """.replace(" " * 12, "")
        )
        first, *others = notebook.job()
        assert first == [notebook.pid, "cell", "complete", "", 7]
        assert {tuple(row[1:4]) for row in others} == {("running", "complete", "")}
        assert len(others) == 7
        assert sum(row[4] for row in others) == factor * (5 + 3 * 6)


def test_a_process_that_measures_in_the_background_is_no_child(notebook, tmp_path):
    works = tmp_path / "works"
    notebook.run(f"""
        from pathlib import Path
        from epprof_nb.notebook.background_process import BackgroundProcess
        code = ("import sys, time; sys.path.insert(0, {str(tmp_path)!r}); "
            "import work_of_children as w; w.work(1); "
            "open({str(works)!r}, 'w').close(); time.sleep(600)")
        measuring = BackgroundProcess((sys.executable, "-c", code), 600)
        assert measuring.start()
        while not Path({str(works)!r}).exists():
            assert measuring.thread.is_alive()
            time.sleep(0.01)
    """)
    notebook.run("%%gpuprofile job --children\nw.work(2)")
    assert notebook.job() == [[notebook.pid, "cell", "complete", "", 2]]
    notebook.run("measuring.end()")


def test_live_progress_has_a_line_per_process(notebook):
    pid = int(notebook.run("engine = Engine(); print(engine.process.pid)"))
    notebook.run("""\
%%gpuprofile job --children --live
from epprof_nb.notebook import live_progress
seen, show = [], live_progress.NotebookScreen.show
def watched(screen, progress, children=()):
    show(screen, progress, children)
    seen[:] = [child.progress.kernels for child in children if child.progress]
live_progress.NotebookScreen.show = watched
engine.call(w.work, 6)
while seen != [6]:
    time.sleep(0.01)
""")
    page = next(page for page in notebook.pages if "6 kernels" in page)
    assert "Child processes" in page
    assert f"process {pid}" in page
    assert [row[4] for row in notebook.job()] == [0, 6]


def test_persistent_workers_of_a_data_loader(notebook):
    pytest.importorskip("torch")
    notebook.run("""
        import torch
        loader = torch.utils.data.DataLoader(
            w.Squares(), batch_size=4, num_workers=2, persistent_workers=True
        )
        for batch in loader: pass
    """)
    notebook.run("%%gpuprofile job --children\nfor batch in loader: pass")
    rows = notebook.job()
    assert [row[1:4] for row in rows[1:]] == [["running", "complete", ""]] * 2
    assert sum(row[4] for row in rows[1:]) == 32


def test_children_of_the_cell_without_the_setting(tmp_path):
    with running_kernel() as client:
        notebook = Notebook(client, tmp_path, listen=False)
        notebook.run("earlier = Engine(); cat = subprocess.Popen(['cat'], stdin=subprocess.PIPE)")
        notebook.run(f"""\
%%gpuprofile job --children
earlier.call(w.work, 1)
with mp.get_context("fork").Pool(2) as pool:
    pool.map(w.work, [3] * 4, chunksize=1)
later = Engine()
subprocess.run([sys.executable, "-c",
    "import sys; sys.path.insert(0, {str(tmp_path)!r}); import work_of_children as w; w.work(9)"])
""")
        rows = notebook.job()
        silent = {row[3] for row in rows if row[2] == "not recorded"}
        assert silent == {"started before", "not Python"}
        forked = [row for row in rows if row[1] == "fork"]
        assert sum(row[4] for row in forked) == 12
        assert sorted(row[4] for row in rows if row[1] == "subprocess") == [1, 9]
        assert notebook.run("print('EPPROF_CHILDREN' in os.environ)") == "False\n"
        notebook.run("%%gpuprofile job --children\nlater.call(w.work, 4)")  # it still listens
        assert [r[1:] for r in notebook.job() if r[4] > 0] == [["running", "complete", "", 4]]


def test_an_error_and_ctrl_c_end_the_recording_of_the_children(notebook):
    notebook.run("engine = Engine()")
    notebook.run(
        "%%gpuprofile job --children\nengine.call(w.work, 3)\n1 / 0", error="ZeroDivisionError"
    )
    assert [row[4] for row in notebook.job()] == [0, 3]

    def interrupt(text):
        if "waiting" in text:
            os.kill(notebook.pid, signal.SIGINT)

    notebook.run(
        "%%gpuprofile job --children\nengine.call(w.work, 4)\n"
        "print('waiting', flush=True)\ntime.sleep(600)",
        error="KeyboardInterrupt",
        on_output=interrupt,
    )
    assert [row[4] for row in notebook.job()] == [0, 4]
    notebook.run("%%gpuprofile job --children\nengine.call(w.work, 5)")
    assert [row[4] for row in notebook.job()] == [0, 5]


def test_children_that_are_busy_in_c_or_killed(notebook, tmp_path):
    with_gil, without_gil = fifos = tmp_path / "with", tmp_path / "without"
    for fifo in fifos:
        os.mkfifo(fifo)
    notebook.run("with_gil, without_gil, killed = Engine(), Engine(), Engine()")
    with with_gil.open("r+b", buffering=0), without_gil.open("r+b", buffering=0):
        notebook.run(f"""\
%%gpuprofile job --children
with_gil.call(w.work, 1)
killed.process.kill(); killed.process.join()
without_gil.send(w.leave_the_gil, {str(without_gil)!r})
with_gil.send(w.keep_the_gil, {str(with_gil)!r})
time.sleep(0.5)
""")
        pids = json.loads(notebook.run("print([e.process.pid for e in (with_gil, without_gil)])"))
        rows = {row[0]: row[1:] for row in notebook.job()}
    assert rows[pids[0]][1] == "not recorded"
    assert "did not answer within 2 s" in rows[pids[0]][2]
    assert rows[pids[1]][:3] == ["running", "complete", ""]
    assert len(rows) == 4  # the killed one is listed, or its journal is its part
    notebook.run("with_gil.end.recv(); without_gil.end.recv()")
    notebook.run("%%gpuprofile job --children\nwith_gil.call(w.work, 6)")
    assert [row[4] for row in notebook.job() if row[0] == pids[0]] == [6]


def test_two_notebooks_beside_each_other(notebook, tmp_path):
    with running_kernel() as client:
        other = Notebook(client, tmp_path, listen=True)
        for each in (notebook, other):
            each.run("engine = Engine()")
        notebook.run("%%gpuprofile job --children\nengine.call(w.work, 2)")
        other.run("%%gpuprofile job --children\nengine.call(w.work, 3)")
        first, second = notebook.job(), other.job()
    assert [row[4] for row in first] == [0, 2]
    assert [row[4] for row in second] == [0, 3]
    assert not {row[0] for row in first} & {row[0] for row in second}


def test_the_job_is_shown_below_the_cell_and_unloading_ends_all(notebook):
    notebook.run("%config GpuProfile.quiet = False\nengine = Engine()")
    shown = []
    notebook.client.execute_interactive(
        "%%gpuprofile job --children\nengine.call(w.work, 2)",
        output_hook=lambda m: shown.append(m["content"].get("data", {}).get("text/plain", "")),
        timeout=300,
    )
    assert any("2 processes" in text for text in shown)
    notebook.run("%config GpuProfile.quiet = True")
    notebook.run("%unload_ext epprof_nb")
    assert notebook.run("print('EPPROF_CHILDREN' in os.environ)") == "False\n"
    notebook.run("%load_ext epprof_nb")
    notebook.run("%%gpuprofile -q job --children\nengine.call(w.work, 2)")
    assert [row[2:4] for row in notebook.job()[1:]] == [["not recorded", "started before"]]
