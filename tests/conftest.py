"""Ctrl-C as in a terminal, hypothesis without deadlines, workers, repeats, environment."""

from __future__ import annotations

import atexit
import compileall
import gc
import os
import re
import signal
import sys
import types

import pytest

from tests.paths import ROOT, TESTS

try:
    from hypothesis import HealthCheck, settings
except ImportError:
    pass  # the tests that need it are skipped
else:
    # The workers of pytest-xdist and what they start share the processors. Each run of the suite
    # tries other examples.
    settings.register_profile(
        "busy", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("busy")

# The end of the process frees what `frozen_heap` froze; nanobind would report it as leaked. pytest
# collects garbage before, which would search all modules and tests again.
atexit.register(gc.unfreeze)

# Kernels that tests start share the processors with other tests.
os.environ["EPPROF_CALIBRATE"] = "0"

# JAX would take three quarters of the memory of a GPU, which the tests beside need.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

# A shell starts its background jobs with SIGINT ignored, and nohup ignores SIGHUP. Children inherit
# that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser):
    parser.addoption(
        "--ep-device", default="host", metavar="DEVICE",
        help="run the tests of kernels in Python on this device: host, or cuda:0 with CuPy",
    )  # fmt: skip


def usable_processors() -> int:
    """The processors that this process may use: a container may have fewer than the machine."""
    return len(os.sched_getaffinity(0))


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Run the whole suite on all processors; a part of it, or with a debugger, in this process.

    There are three workers more than processors, because kernels, servers, a browser and fixed
    times keep each waiting for much of its time.

    ``addopts = "-n auto"`` would need pytest-xdist, start workers for a single test, and 64 of
    them on a large server.
    """
    option = config.option
    if not config.pluginmanager.hasplugin("xdist") or hasattr(config, "workerinput"):
        return
    chosen = option.file_or_dir or option.keyword or option.markexpr
    if chosen or option.usepdb or option.trace or option.collectonly or option.capture == "no":
        return
    if option.numprocesses is None and not option.tx:
        option.numprocesses = min(usable_processors() + 3, 8)
        compile_package()
        rewrite_tests(config)
        find_constants()


def compile_package() -> None:
    """Compile the package once for all programs that tests start.

    An editable installation is not compiled. With ``PYTHONDONTWRITEBYTECODE``, which many
    containers set, each of these programs would compile its modules again, in up to 0.4 s.
    """
    compileall.compile_dir(ROOT / "epprof_nb", quiet=2, rx=re.compile("node_modules"))


def rewrite_tests(config) -> None:
    """Rewrite the assertions of all tests once, as the import of a test does in each worker.

    That takes 10 s of processor time. The functions are pytest's own; without them, or where they
    fail, the workers rewrite.
    """
    try:
        from _pytest.assertion.rewrite import (
            PYC_TAIL,
            _rewrite_test,
            _write_pyc,
            assertstate_key,
            get_cache_dir,
            try_makedirs,
        )
    except ImportError:
        return
    state = config.stash.get(assertstate_key, None)  # None with --assert=plain
    if state is None:
        return
    changed = []
    for path in [*TESTS.rglob("test_*.py"), *TESTS.rglob("conftest.py")]:
        compiled = get_cache_dir(path) / f"{path.stem}{PYC_TAIL}"
        if not compiled.exists() or compiled.stat().st_mtime < path.stat().st_mtime:
            changed.append((path, compiled))

    def rewrite(path, compiled):
        if try_makedirs(compiled.parent):  # else the checkout is read-only
            status, code = _rewrite_test(path, config)
            _write_pyc(state, code, status, compiled)

    on_all_processors(rewrite, changed)


def find_constants() -> None:
    """Find the constants in the package, which Hypothesis tries in its examples, once.

    Hypothesis keeps them. In a new checkout, each worker would take 3 s of processor time.
    """
    try:
        from hypothesis.internal.constants_ast import constants_from_module
    except ImportError:
        return

    def find(path):
        module = types.ModuleType(path.stem)
        module.__file__ = str(path)
        constants_from_module(module)

    files = [
        path for path in (ROOT / "epprof_nb").rglob("*.py") if "node_modules" not in path.parts
    ]
    on_all_processors(find, [(path,) for path in files])


def on_all_processors(function, calls) -> None:
    """Call the function with each tuple of arguments, in a forked child per processor."""
    processes, children = min(usable_processors(), len(calls)), []
    for number in range(processes):
        children.append(os.fork())
        if children[-1] == 0:
            try:
                for arguments in calls[number::processes]:
                    function(*arguments)
            finally:
                os._exit(0)
    for child in children:
        os.waitpid(child, 0)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect no garbage before the tests: searching what all tests are takes a second."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """Let the garbage collector run between tests only: its pauses are ops of a profile.

    Scripts that are profiled in this process raise the limit of recursion.
    """
    was_on, limit = gc.isenabled(), sys.getrecursionlimit()
    gc.disable()
    try:
        return (yield)
    finally:
        sys.setrecursionlimit(limit)
        if was_on:
            gc.enable()


JUPYTER = {"lab", "notebook7", "front_end", "in_jupyterlab", "open_notebook"}


def needs_jupyter(node_id: str) -> bool:
    """Whether a test needs a Jupyter server, by the name of its file, its own or its parameter."""
    name = node_id.lower()
    return name.startswith("tests/browser/") and ("jupyterlab" in name or "notebook 7" in name)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give each worker whole files, and one of them all tests that need a Jupyter server, or a GPU.

    ``--dist loadgroup`` would do the same with marks, but it forms no groups with pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            if needs_jupyter(nodeid):
                return "jupyter"
            return "gpu" if nodeid.startswith("tests/gpu/") else nodeid.split("::")[0]

    config.option.loadscopereorder = False  # the group for Jupyter, the longest, comes early
    return ByFile(config, log)


def pytest_collection_modifyitems(config, items):
    """Repeat failed tests in CI."""
    repeats = "CI" in os.environ and config.pluginmanager.hasplugin("rerunfailures")
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        in_jupyter = JUPYTER & set(item.fixturenames) or params.get("shows") == "JupyterLab"
        if bool(in_jupyter) != needs_jupyter(item.nodeid):
            raise pytest.UsageError(
                f"{item.nodeid}: tests that need a Jupyter server have jupyterlab or Notebook 7 in "
                "their names, and no others have; pytest-xdist distributes them by name"
            )
        if repeats:
            # A machine for CI may suspend everything for a second, and a browser, a Jupyter server
            # and a kernel share its processors with the other workers. The summary lists what was
            # repeated; what fails again is a failure.
            in_browser = item.nodeid.startswith("tests/browser/")
            item.add_marker(pytest.mark.flaky(reruns=2 if in_browser else 1))


@pytest.fixture(scope="module", autouse=True)
def frozen_heap():
    """Leave all modules and tests, two million objects, out of the collections of garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def no_arenas(monkeypatch):
    """Profiles do not see the GPU memory of the stand-in's devices, which other tests have used."""
    from epprof_nb.recording.memory.arena_blocks import ArenaLog

    monkeypatch.setattr(ArenaLog, "take", lambda self: None)


@pytest.fixture
def no_modules_of_tests(monkeypatch):
    """Modules of tests hold no device memory: following what they keep takes seconds."""
    from epprof_nb.recording.out_of_memory import explain_error

    modules = explain_error.users_modules

    def others(program):
        return (found for found in modules(program) if not found[0].startswith(f"{TESTS}/"))

    monkeypatch.setattr(explain_error, "users_modules", others)


@pytest.fixture
def named(monkeypatch):
    """A function that assigns objects to variables of the user, which name their modules."""

    def name(**objects):
        for variable, value in objects.items():
            monkeypatch.setattr(sys.modules["__main__"], variable, value, raising=False)

    return name
