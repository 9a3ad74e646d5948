"""An IPython shell with the magics loaded."""

from __future__ import annotations

import atexit
import builtins
import sys

import IPython
import pytest
from IPython.core.interactiveshell import InteractiveShell
from scripts import RUN, execute, execute_in_fork, without_work
from traitlets.config import Config

from epprof_nb.notebook import cell_output
from epprof_nb.notebook.extension import load_ipython_extension, unload_ipython_extension


@pytest.fixture(autouse=True)
def own_memory(no_arenas):
    """Tests count the memory of profiles."""


@pytest.fixture
def shell(monkeypatch):
    # IPython does not set `_` if it is a builtin, as after Python's own display hook.
    monkeypatch.delattr(builtins, "_", raising=False)
    InteractiveShell.clear_instance()
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "NoColor" if IPython.version_info[0] < 9 else "nocolor"
    shell = InteractiveShell.instance(config=config)
    load_ipython_extension(shell)
    yield shell
    unload_ipython_extension(shell)
    shell.history_manager.end_session()
    # It would keep each shell until the process ends, and collect garbage for each one then.
    atexit.unregister(shell.atexit_operations)
    InteractiveShell.clear_instance()


@pytest.fixture
def shown(monkeypatch):
    """The objects displayed under the cells."""
    shown = []
    monkeypatch.setattr(cell_output, "display", shown.append)
    return shown


@pytest.fixture
def run(shell, shown):
    def run(cell, **options):
        options.setdefault("store_history", True)
        return shell.run_cell(cell, **options)

    return run


@pytest.fixture
def profiled(tmp_path):
    """Run a script, ``job.py``, under the profiler.

    With `fresh`, no other module is imported than by its own process.
    """

    def run(source, *arguments, options=(), fresh=False):
        (tmp_path / "job.py").write_text(source, encoding="utf-8")
        start = execute if fresh else execute_in_fork
        return start([*RUN, *options, "job.py", *arguments], tmp_path)

    return run


@pytest.fixture
def both(profiled, tmp_path):
    """Run a script plainly, without the work to profile, and under the profiler."""

    def run(source, *arguments, options=(), fresh=False):
        (tmp_path / "job.py").write_text(without_work(source), encoding="utf-8")
        plain = execute([sys.executable, "job.py", *arguments], tmp_path)
        return plain, profiled(source, *arguments, options=options, fresh=fresh)

    return run
