"""An IPython shell with the magics loaded."""

from __future__ import annotations

import IPython
import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from epprof_nb.notebook import cell_run
from epprof_nb.notebook.magic import load_ipython_extension, unload_ipython_extension


@pytest.fixture
def shell():
    InteractiveShell.clear_instance()
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "NoColor" if IPython.version_info[0] < 9 else "nocolor"
    shell = InteractiveShell.instance(config=config)
    load_ipython_extension(shell)
    yield shell
    unload_ipython_extension(shell)
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()


@pytest.fixture
def shown(monkeypatch):
    """The objects displayed under the cells."""
    shown = []
    monkeypatch.setattr(cell_run, "display", shown.append)
    return shown


@pytest.fixture
def run(shell, shown):
    def run(cell, **options):
        options.setdefault("store_history", True)
        return shell.run_cell(cell, **options)

    return run
