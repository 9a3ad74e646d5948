"""How a script under ``epprof run`` ends: signals, children, threads, closed streams."""

import sys

import pytest
from scripts import RUN, WORK, execute, execute_in_fork, kernels, without_work

HEAD = "import atexit, os, signal, sys, threading, time, epprof_nb\n" + WORK

LAUNCH = "host.launch(np.add, x, x, x, name='late'); host.synchronize()\n"


# One handler is that of both signals.
@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("SIGHUP", "try:\n    end()\nexcept:\n    print('caught', flush=True)"),
        ("SIGTERM", "try:\n    end()\nfinally:\n    print('finally', flush=True)"),
        ("SIGTERM", "class Last:\n    def __del__(self): end()\nLast()"),
    ],
    ids=["except", "finally", "__del__"],
)
def test_a_script_cannot_catch_a_signal_that_ends_it(name, body, both, tmp_path):
    end = (
        f"def end():\n    os.kill(os.getpid(), signal.{name})\n    time.sleep(60)\n"
        "    print('survived', flush=True)\n"
    )
    plain, profiled = both(HEAD + end + body + "\nprint('on', flush=True)")
    assert plain.stdout == ""
    assert (profiled.returncode, profiled.stdout, profiled.stderr) == (
        plain.returncode, plain.stdout, plain.stderr,
    )  # fmt: skip
    assert len(kernels(tmp_path / "job.epprof")) == 5


def test_a_signal_inside_the_profiler_saves_the_profile(profiled, tmp_path):
    # The saving thread must wait for the lock of the service, which the main thread holds.
    source = HEAD + (
        "from epprof_nb.recording.session.service import service\n"
        "from epprof_nb.host._log import LOG\n"
        "drain = LOG.drain\n"
        "def kill_and_drain():\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    time.sleep(0)\n"
        "    return drain()\n"
        "with service._lock:\n"
        "    with epprof_nb.profile():\n"
        "        LOG.drain = kill_and_drain\n"
        "time.sleep(30)\n"
    )
    done = profiled(source)
    assert done.returncode == -15
    assert len(kernels(tmp_path / "job.epprof")) == 5


def test_children_die_of_a_signal_as_under_python(both, tmp_path):
    source = HEAD + (
        "import multiprocessing\n"
        "context = multiprocessing.get_context('fork')\n"
        "child = context.Process(target=time.sleep, args=(30,))\n"
        "child.start()\n"
        "child.terminate()\n"
        "child.join()\n"
        "print(child.exitcode)\n"
        "reader, writer = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.write(writer, repr(signal.getsignal(signal.SIGTERM)).encode())\n"
        "    os._exit(0)\n"
        "print(os.read(reader, 99))\n"
        "with context.Pool(2) as pool:\n"
        "    print(pool.map(abs, range(3)))\n"
    )
    plain, profiled = both(source)
    assert plain.stdout.splitlines()[0] == "-15"
    assert (profiled.stdout, profiled.stderr) == (plain.stdout, plain.stderr)
    assert len(kernels(tmp_path / "job.epprof")) == 5


def test_threads_and_exit_callbacks_are_recorded(profiled, tmp_path):
    source = HEAD + (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def late(go):\n"
        "    go.wait()\n"
        f"    {LAUNCH}"
        "go = threading.Event()\n"
        "threading.Thread(target=late, args=(go,)).start()\n"
        "threading.Timer(0.2, go.set).start()\n"
        "pool = ThreadPoolExecutor(1)\n"  # its thread waits for work until the interpreter ends
        "pool.submit(print, 'submitted').result()\n"
        "@atexit.register\n"
        "def last():\n"
        f"    {LAUNCH}"
    )
    page = ("--html", "page.html", "-o", "job.epprof")
    done = profiled(source, options=page)
    assert (done.returncode, done.stderr) == (0, "")
    assert kernels(tmp_path / "job.epprof")[5:] == ["late", "late"]
    assert (tmp_path / "page.html").exists()


LOUD = [argument for argument in RUN if argument != "--quiet"]


@pytest.mark.parametrize(
    ("body", "redirect"),
    [
        ("", "2>&-"),
        ("", "2>/dev/full"),
        ("", "2> >(exec true)"),
        ("sys.stderr.close()", ""),
        ("sys.stderr = None", ""),
        ("sys.stderr = open(os.devnull, 'w')", ""),
        ("sys.stdout.close(); sys.stderr.close()", ""),
        ("sys.exit(3)", "2>&-"),
        ("sys.exit('text')", "2>/dev/full"),
    ],
)
def test_a_broken_stderr_changes_nothing(body, redirect, tmp_path):
    source = HEAD + "time.sleep(0.1)\n" + body
    codes = []
    for command, text in (
        ([sys.executable], without_work(source)),
        ([*LOUD, "--html", "job.html", "-o", "job.epprof"], source),
    ):
        (tmp_path / "job.py").write_text(text)
        line = " ".join([*command, "job.py", redirect])
        if text is source and not redirect:
            done = execute_in_fork([*command, "job.py"], tmp_path)
        else:
            done = execute(["bash", "-c", line], tmp_path)
        codes.append(done.returncode)
        assert done.stdout == ""
    assert codes[0] == codes[1]
    assert len(kernels(tmp_path / "job.epprof")) == 5
    assert (tmp_path / "job.html").exists()


@pytest.mark.parametrize(
    ("last", "code", "lacking", "other"),
    [
        ("", 73, "--html", "-o"),
        ("print('unflushed', end=''); sys.exit()", 73, "-o", "--html"),
        ("sys.exit(3)", 3, "--html", "-o"),
        ("1 / 0", 1, "-o", "--html"),
        ("os.kill(os.getpid(), signal.SIGTERM)", -15, "--html", "-o"),
    ],
)
def test_a_script_without_errors_fails_if_a_file_cannot_be_written(
    last, code, lacking, other, tmp_path
):
    (tmp_path / "gone").mkdir()
    (tmp_path / "job.py").write_text(HEAD + "os.rmdir('gone')\n" + last)
    done = execute_in_fork([*RUN, lacking, "gone/file", other, "other", "job.py"], tmp_path)
    assert (done.returncode, "file could not be written" in done.stderr) == (code, True)
    assert done.stdout == ("unflushed" if "unflushed" in last else "")
    assert (tmp_path / "other").exists()


def test_main_has_the_names_it_has_under_python(both):
    source = (
        "import sys\n"
        "main = vars(sys.modules['__main__'])\n"
        "print({k: repr(v)[:40] for k, v in sorted(main.items()) if 'epprof' not in k"
        " and k not in ('main', '__loader__')})\n"
    )
    plain, profiled = both(source)
    assert "__builtins__" in plain.stdout
    assert profiled.stdout == plain.stdout


def test_no_hook_is_reported_as_by_python(both):
    for hook in ("None", "lambda *_: 1 / 0", "lambda *_: sys.exit(4)"):
        source = f"import sys\nsys.excepthook = {hook}\nraise ValueError('no')\n"
        plain, profiled = both(source)
        assert plain.returncode == profiled.returncode
        assert plain.stderr == profiled.stderr


def test_a_script_has_the_recursion_depth_of_python(both):
    source = (
        "def depth(n=1):\n"
        "    try:\n        return depth(n + 1)\n    except RecursionError:\n        return n\n"
        "print(depth())\n"
    )
    plain, profiled = both(source, options=("--no-lines",))
    assert abs(int(profiled.stdout) - int(plain.stdout)) <= 5


def test_a_child_that_leaves_a_profile_goes_on(tmp_path):
    source = HEAD + (
        "with epprof_nb.profile() as prof:\n"
        "    child = os.fork()\n"
        "if child == 0:\n"
        "    print(len(prof.activities), prof.info['notes'], flush=True)\n"
        "    os._exit(5)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    (tmp_path / "job.py").write_text(source)
    plain = execute([sys.executable, "job.py"], tmp_path)
    assert plain.stderr == ""
    assert plain.stdout.splitlines()[-1] == "5"
    assert "forked" in plain.stdout
