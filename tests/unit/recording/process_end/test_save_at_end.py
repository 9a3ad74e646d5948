"""Children that end by a signal: the profile is saved, and nobody waits for them."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest

CHILD = """
import ctypes, os, signal, sys, threading
from pathlib import Path
from epprof_nb.recording.process_end.save_at_end import SaveAtEnd

def save():
    exec("1")  # as modules do that are imported for it
    if sys.argv[2] == "while it saves":
        os.kill(os.getpid(), signal.SIGTERM)
        sum(range(1000))  # the handler is called in between
    Path(sys.argv[1]).write_text("saved")
    if sys.argv[2] == "while saving fails":
        raise OSError("no space left")
    return True

SaveAtEnd(stop=lambda: None, save=save).install(watch=True)
"""
BLOCKED = """
print("ready", flush=True)
mutex = ctypes.create_string_buffer(64)
library = ctypes.CDLL(None)
library.pthread_mutex_lock(mutex)
library.pthread_mutex_lock(mutex)  # no signal ends this wait, so that Python calls no handler
"""


def run(how, rest, path, before=""):
    code = before + textwrap.dedent(CHILD) + rest
    return subprocess.Popen(
        [sys.executable, "-c", code, str(path), how], stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize("how", ["while it waits for a lock", "while saving fails"])
def test_a_main_thread_that_calls_no_handler_ends(tmp_path, how):
    path = tmp_path / "part"
    with run(how, BLOCKED, path) as child:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.5)  # until it waits
        child.terminate()
        assert child.wait(timeout=60) == -signal.SIGTERM
    assert path.read_text() == "saved"


def test_a_signal_that_arrives_while_the_end_saves_ends_the_process_then(tmp_path):
    path = tmp_path / "part"
    with run("while it saves", "", path) as child:
        assert child.wait(timeout=20) == -signal.SIGTERM
    assert path.read_text() == "saved"


def test_numbers_of_signals_reach_no_descriptor(tmp_path):
    closes = """
        print(signal.set_wakeup_fd(-1), flush=True)
        os.closerange(3, 256)
        names = [f"{sys.argv[1]}{n}" for n in range(8)]
        files = [os.open(name, os.O_RDWR | os.O_CREAT) for name in names]
        for number in (signal.SIGUSR1, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
            os.kill(os.getpid(), number)
        print([name for name in names if os.path.getsize(name)], flush=True)
    """
    with run("", textwrap.dedent(closes), tmp_path / "part") as child:
        assert child.stdout.read() == "-1\n[]\n"
        assert child.wait(timeout=60) == 0


def test_a_call_that_holds_the_gil_ends(tmp_path):
    holds = """
        print("ready", flush=True)
        sum(range(10**12))
    """
    with run("", textwrap.dedent(holds), tmp_path / "part") as child:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.5)  # until it computes
        child.terminate()
        try:
            assert child.wait(timeout=60) == -signal.SIGTERM
        finally:
            child.kill()


def test_the_program_finds_the_default_action_and_sets_its_own(tmp_path):
    own = """
        print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
        def mine(number, frame):
            print("mine", callable(previous), flush=True)
            sys.exit(5)
        previous = signal.signal(signal.SIGTERM, mine)
        print(signal.getsignal(int(signal.SIGTERM)) is mine, flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
    """
    path = tmp_path / "part"
    with run("", textwrap.dedent(own), path) as child:
        assert child.stdout.read() == "True\nTrue\nmine False\n"
        assert child.wait(timeout=60) == 5
    assert path.read_text() == "saved"


OWN_BEFORE = """
import os, signal
def mine(number, frame):
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(1)
previous = signal.signal(signal.SIGTERM, mine)
"""
RESTORED = """
previous = signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGTERM, previous)
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (OWN_BEFORE, ""),
        ("", RESTORED),
    ],
    ids=["in its handler", "afterwards"],
)
def test_a_program_that_restores_the_default_action_is_saved(tmp_path, before, after):
    path = tmp_path / "part"
    kills = f"{after}\nos.kill(os.getpid(), signal.SIGTERM)\nos._exit(1)"
    with run("", kills, path, before=before) as child:
        assert child.wait(timeout=60) == -signal.SIGTERM
    assert path.read_text() == "saved"


def test_the_end_without_callbacks_saves_and_can_be_pickled(tmp_path):
    path = tmp_path / "part"
    ends = "import pickle\npickle.loads(pickle.dumps([os.execv, os._exit]))[1](3)"
    with run("", ends, path) as child:
        assert child.wait(timeout=60) == 3
    assert path.read_text() == "saved"


def test_a_program_that_executes_another_is_saved(tmp_path):
    executes = """
        for missing in ("/missing", "", None):
            try:
                os.execv(missing, ["x"])
            except (OSError, TypeError):
                print(Path(sys.argv[1]).exists(), flush=True)
        os.environ["PATH"] = f"/missing:{os.environ['PATH']}"
        os.execlp("sh", "sh", "-c", "exit 7")
    """
    path = tmp_path / "part"
    with run("", textwrap.dedent(executes), path) as child:
        assert child.stdout.read() == "False\nFalse\nFalse\n"
        assert child.wait(timeout=60) == 7
    assert path.read_text() == "saved"


def test_an_interrupt_ends_the_child_as_it_ends_python(tmp_path):
    path = tmp_path / "part"
    with run("", "raise KeyboardInterrupt", path) as child:
        assert child.wait(timeout=60) == -signal.SIGINT
    assert path.read_text() == "saved"
    caught = """
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            sys.last_type, _, sys.last_traceback = sys.exc_info()  # as interactive shells do
            sys.last_traceback = None
    """
    with run("", textwrap.dedent(caught), path) as child:
        assert child.wait(timeout=60) == 0


def test_a_child_that_c_code_forks_has_the_default_action(tmp_path):
    forks = """
        pid = ctypes.PyDLL(None).fork()
        if not pid:
            ctypes.PyDLL(None).sleep(60)
            os._exit(0)
        import time
        time.sleep(0.5)
        os.kill(pid, signal.SIGTERM)
        print(os.waitpid(pid, 0)[1], flush=True)
    """
    with run("", textwrap.dedent(forks), tmp_path / "part") as child:
        assert child.stdout.readline() == f"{int(signal.SIGTERM)}\n"
        assert child.wait(timeout=60) == 0


def test_a_child_of_the_child_has_the_default_action(tmp_path):
    forks = """
        import time
        pid = os.fork()
        if not pid:
            time.sleep(60)
        os.kill(pid, signal.SIGTERM)
        print(os.waitpid(pid, 0)[1], flush=True)
    """
    path = tmp_path / "part"
    with run("", textwrap.dedent(forks), path) as child:
        assert child.stdout.readline() == f"{int(signal.SIGTERM)}\n"
        assert child.wait(timeout=60) == 0
    assert path.read_text() == "saved"
