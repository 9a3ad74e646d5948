"""``epprof run``: a script behaves as it does under python, and its profile is always saved."""

import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from scripts import RUN, WORK, execute, kernels

import epprof_nb
from epprof_nb.cli import main
from epprof_nb.recording.session import marked_steps

SHOW = '''"""Title."""
from __future__ import annotations
import os, sys, epprof_nb
print(sys.argv, sys.path[0], __name__, __file__, __doc__, __package__, __spec__ is None)
def annotated(x: NotDefined): return x
print(annotated.__annotations__, sys.modules["__main__"].annotated is annotated)
'''


def test_a_script_sees_what_it_sees_under_python(both, tmp_path):
    arguments = ("--out", "mine", "-q", "--", "-m", "x y")
    plain, profiled = both(SHOW + WORK, *arguments, fresh=True)
    assert profiled.stdout == plain.stdout
    assert profiled.stderr == ""
    assert "'--', '-m', 'x y'" in plain.stdout
    assert kernels(tmp_path / "job.epprof") == [f"add{i}" for i in range(5)]


def test_statements_of_the_script_are_ops_in_its_page_and_file(profiled, tmp_path):
    page = ("--html", "page.html", "-o", "job.epprof")
    profiled("import epprof_nb\n" + WORK, options=page, fresh=True)
    assert "<title>job.py · host device" in (tmp_path / "page.html").read_text("utf-8")
    prof = epprof_nb.load(tmp_path / "job.epprof")
    assert list(prof.sources) == ["job.py"]
    lines = prof.by_line().set_index("line")["kernels"]
    assert lines[8] == 5
    assert prof.ops["name"].iloc[0] == "job.py"
    assert prof.info["added_ns"]["parts"]["statements"] > 0
    assert not prof.activities["op_id"].isna().any()
    launches = prof.ops[prof.ops["line"] == 8]
    assert launches["repeat"].tolist() == [1, 2, 3, 4, 5]


ENDINGS = {
    "exit": "sys.exit(7)",
    "exit with a text": "sys.exit('that is all')",
    "exit without a code": "sys.exit()",
    "error": "def fail():\n    raise ValueError('no')\nfail()",
    "chained error": "try: 1/0\nexcept ZeroDivisionError as e: raise KeyError('k') from e",
    "own hook": "sys.excepthook = lambda *error: print('hook', error[0])\nraise ValueError",
    "os._exit": "sys.stdout.flush()\nos._exit(4)",
    "another program": "sys.stdout.flush()\nos.execlp('sh', 'sh', '-c', 'exit 7')",
    "interrupt": "raise KeyboardInterrupt",
    "replaced built-ins": """
import builtins
def replaced(*args, **named): raise RuntimeError("built-in")
for name in ("open", "print", "isinstance", "getattr", "compile"):
    setattr(builtins, name, replaced)
del builtins.zip
""",
    "SIGINT": "os.kill(os.getpid(), signal.SIGINT); time.sleep(60)",
    "SIGTERM": "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
    "own handler": """
def end(number, frame):
    print("previous", previous, callable(previous))
    sys.exit(5)
previous = signal.signal(signal.SIGTERM, end)
os.kill(os.getpid(), signal.SIGTERM)
""",
    "handler until then": """
previous = signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGTERM, previous)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
""",
    "SIGHUP": "os.kill(os.getpid(), signal.SIGHUP); time.sleep(60)",
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_every_ending_is_that_of_python_and_saves_the_profile(ending, both, tmp_path):
    head = "import atexit, os, signal, sys, time, epprof_nb\natexit.register(print, 'bye')\n"
    fresh = "builtins" in ending  # later imports meet the replaced ones
    plain, profiled = both(head + WORK + ending, fresh=fresh)
    assert profiled.returncode == plain.returncode
    assert profiled.stderr == plain.stderr
    assert profiled.stdout == plain.stdout
    assert len(kernels(tmp_path / "job.epprof")) == 5


AT_THE_END = """
import atexit, sys
class Last:
    def __init__(self, name): self.name = name
    def __del__(self): print("deleted", self.name)
def generate():
    try: yield
    finally: print("closed")
def fail():
    local = Last("local")
    raise ValueError("no")
atexit.register(lambda: print("bye", sys.last_type, sys.last_value, sys.last_traceback.tb_lineno))
kept, generator = Last("global"), generate()
next(generator)
"""


@pytest.mark.parametrize("options", [(), ("--children", "-o", "run/")], ids=["alone", "children"])
@pytest.mark.parametrize("ending", ["fail()", "raise RuntimeError('CUDA out of memory')"])
def test_objects_of_a_script_that_failed_are_deleted_as_under_python(ending, options, both):
    plain, profiled = both(AT_THE_END + ending, options=options)
    assert profiled.stdout == plain.stdout
    assert "deleted global" in plain.stdout
    assert "closed" in plain.stdout
    assert "Exception ignored" not in profiled.stderr


def test_a_class_of_an_error_does_not_change_the_exit_code(both):
    source = """
class Meta(type):
    def __getattribute__(cls, name):
        if name == "__mro__": raise SystemExit(7)
        return super().__getattribute__(name)
class Odd(RuntimeError, metaclass=Meta): pass
raise Odd("CUDA out of memory")
"""
    plain, profiled = both(source)
    assert profiled.returncode == plain.returncode == 1


def test_a_script_can_wait_for_all_other_threads(both):
    source = """
import threading, time
threading.Thread(target=time.sleep, args=(0.1,)).start()
for thread in threading.enumerate():
    if thread is not threading.main_thread(): thread.join()
print(threading.active_count())
"""
    plain, profiled = both(source, options=("--children", "-o", "run/"))
    assert profiled.stdout == plain.stdout == "1\n"
    assert profiled.stderr == ""


def test_the_profile_names_the_error_that_ended_the_script(profiled, tmp_path):
    profiled("import epprof_nb\n" + WORK + "raise ValueError('no')")
    info = CliRunner().invoke(main, ["info", str(tmp_path / "job.epprof")])
    assert info.exit_code == 0
    assert "ended by" in info.output
    assert "ValueError" in info.output


def test_a_handler_of_the_script_handles_the_signal(both):
    source = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    plain, profiled = both(source)
    assert plain.returncode == profiled.returncode == 3


def test_a_signal_from_outside_saves_the_profile(tmp_path):
    (tmp_path / "job.py").write_text(
        "import time, epprof_nb\n" + WORK + "print('ready', flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen([*RUN, "job.py"], cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == -signal.SIGTERM
    assert len(kernels(tmp_path / "job.epprof")) == 5


def test_steps_limit_what_is_recorded(profiled, tmp_path):
    # Step 0 is before the first call, so that step i launches add(i - 1).
    for asked, recorded in {"2:4": [1, 2], ":2": [0], "4:": [3, 4]}.items():
        profiled("import epprof_nb\n" + WORK, options=("--steps", asked, "-o", "some.epprof"))
        assert kernels(tmp_path / "some.epprof") == [f"add{i}" for i in recorded]
        first = int(asked.partition(":")[0] or 0)
        assert epprof_nb.load(tmp_path / "some.epprof").info["first_step"] == first


def test_options_after_the_script_are_pointed_out(tmp_path):
    (tmp_path / "job.py").write_text("pass\n")
    done = subprocess.run(
        [*RUN[:-1], "job.py", "--html", "x.html"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--html was passed to job.py; options of epprof run come before" in done.stderr
    assert "Wrote " in done.stderr


def test_steps_that_are_not_reached_are_reported(profiled, tmp_path):
    done = profiled("import epprof_nb\n" + WORK, options=("--steps", "9:12"))
    assert done.returncode == 0
    assert "ended in step 5, before step 9" in done.stderr
    assert not (tmp_path / "job.epprof").exists()


def test_a_child_that_the_script_forks_saves_nothing(profiled, tmp_path):
    source = (
        "import os, sys, epprof_nb\n"
        "if os.fork() == 0:\n"
        "    sys.exit(0)\n"
        "os.wait()\n"
        "assert not os.path.exists('job.epprof')\n"
    )
    done = profiled(source)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "job.epprof").exists()


def test_a_module_runs_as_under_python(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("from . import other\nimport sys, epprof_nb\n" + WORK)
    (package / "other.py").write_text(
        "import sys\nprint(sys.argv, __name__, __package__, sys.path[0])\n"
    )
    for module in ("package", "package.other"):
        arguments = ["-m", module, "--steps", "1:2", "-q"]
        plain = execute([sys.executable, *arguments], tmp_path)
        profiled = execute([*RUN, *arguments], tmp_path)
        assert profiled.stdout == plain.stdout
        assert (profiled.returncode, profiled.stderr) == (plain.returncode, plain.stderr) == (0, "")
    assert len(kernels(tmp_path / "package.epprof")) == 5
    assert (tmp_path / "other.epprof").exists()


def test_a_script_that_changes_its_folder_saves_where_it_was_started(profiled, tmp_path):
    profiled("import os\nos.chdir('/')", options=("-o", "here.epprof", "--html", "here.html"))
    assert {path.name for path in tmp_path.iterdir()} >= {"here.epprof", "here.html"}


@pytest.mark.parametrize("options", [(), ("--children", "-o", "run/")], ids=["alone", "children"])
def test_a_script_imports_its_own_modules_with_names_of_standard_ones(options, both, tmp_path):
    for name in ("statistics", "secrets", "random"):
        (tmp_path / f"{name}.py").write_text(f"mine = {name!r}\n")
    names = "import random, secrets, statistics\nprint(random.mine, secrets.mine, statistics.mine)"
    (tmp_path / "child.py").write_text(names)
    source = f"{names}\nimport sys, posix\nsys.stdout.flush()\n"
    start = "posix.waitpid(posix.posix_spawn(sys.executable, {}, posix.environ), 0)\n"
    for command in ([sys.executable, "child.py"], [sys.executable, "-W", "error", "-c", names]):
        source += start.format(command)
    plain, profiled = both(source, options=options, fresh=True)
    assert profiled.stdout == plain.stdout == "random secrets statistics\n" * 3
    assert profiled.stderr == plain.stderr == ""
    if options:
        assert len(epprof_nb.load(tmp_path / "run").ranks) == 3


def test_a_syntax_error_is_reported_as_by_python(both):
    plain, profiled = both("x = 1\nif x\n    pass\n")
    assert profiled.returncode == plain.returncode == 1
    assert profiled.stderr.splitlines()[-2:] == plain.stderr.splitlines()[-2:]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.py"], "cannot read the script missing.py"),
        (["."], ". is a folder"),
        (["-m", "no_such_module_here"], "no module named no_such_module_here"),
        ([], "Name a script to run"),
        (["--steps", "5", "job.py"], "not of the form A:B"),
        (["--steps", "5:5", "job.py"], "contains no step"),
        (["--detail", "everything", "job.py"], "unknown detail"),
        (["-o", "nowhere/x.epprof", "job.py"], "its folder does not exist"),
        (["-o", "job.py", "job.py"], "is the file of the script"),
        (["--html", "link.py", "job.py"], "is the file of the script"),
        (["--html", "hard.py", "job.py"], "is the file of the script"),
        (["-o", "a", "--html", "./a", "job.py"], "is the file of the profile"),
    ],
)
def test_wrong_options_are_usage_errors_before_anything_runs(
    arguments, message, tmp_path, monkeypatch
):
    (tmp_path / "job.py").write_text("print('ran')")
    (tmp_path / "link.py").symlink_to("job.py")
    (tmp_path / "hard.py").hardlink_to(tmp_path / "job.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    result = CliRunner().invoke(main, ["run", *arguments])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert "ran" not in result.output.splitlines()


def test_info_tells_what_is_in_a_file(tmp_path):
    made = epprof_nb.testing.synthetic_profile(1_000)
    made.save(tmp_path / "made.epprof")
    result = CliRunner().invoke(main, ["info", str(tmp_path / "made.epprof")])
    assert result.exit_code == 0
    kernels = int((made.activities["kind"] == "kernel").sum())
    assert f"{kernels:,} kernel" in result.output
    assert f"ops          {len(made.ops):,}" in result.output


def test_a_report_never_replaces_its_profile(tmp_path):
    made = tmp_path / "made.epprof"
    epprof_nb.testing.synthetic_profile(10).save(made)
    before = made.read_bytes()
    result = CliRunner().invoke(main, ["report", str(made), "-o", str(made)])
    assert result.exit_code == 2
    assert "is the file of the profile to read" in " ".join(result.output.split())
    assert made.read_bytes() == before


def test_info_of_another_file_is_an_error(tmp_path):
    (tmp_path / "text.epprof").write_text("no profile")
    result = CliRunner().invoke(main, ["info", str(tmp_path / "text.epprof")])
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")


def test_a_step_outside_epprof_run_does_nothing():
    epprof_nb.step()
    assert not marked_steps._listeners
    start = time.monotonic()
    with epprof_nb.profile() as prof:
        epprof_nb.step()
    assert prof.wall_ns < (time.monotonic() - start) * 1e9
    assert prof.ops.empty
