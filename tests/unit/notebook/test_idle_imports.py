"""Imports between cells, on a thread."""

import subprocess
import sys
import threading
import types

import pytest

from epprof_nb.notebook.idle_imports import IdleImports

NOTEBOOK = """
import sys
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

shell = InteractiveShell.instance(config=Config(HistoryManager={"hist_file": ":memory:"}))
shell.run_cell("%load_ext epprof_nb")
if sys.argv[1] == "idle":
    from epprof_nb.notebook.extension import _loaded
    _loaded(shell).imports.thread.join()
else:
    shell.run_cell("%unload_ext epprof_nb")
    shell.run_cell("%load_ext epprof_nb")
before = set(sys.modules)
shell.run_cell("%%gpuprofile prof\\nx = 1")
assert "prof" in shell.user_ns
print("imported", *(name for name in list(sys.modules) if name not in before))
"""


def imported_by_first_cell(how: str) -> set[str]:
    command = [sys.executable, "-c", NOTEBOOK, how]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    [line] = [line for line in run.stdout.splitlines() if line.startswith("imported")]
    return set(line.split()[1:])


def test_the_first_profiled_cell_of_an_idle_kernel_imports_little():
    found = imported_by_first_cell("idle")
    assert len([name for name in found if name.startswith("epprof_nb.")]) < 10
    assert not found & {"numpy.ma", "PIL.Image", "email.parser", "epprof_nb.views.view"}


def test_a_cell_needs_no_thread():
    imported_by_first_cell("at once")


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """Modules ``slow_import``, which waits for the gate, and ``next_import``."""
    module = types.ModuleType("import_gate")
    module.begun, module.may_end = threading.Event(), threading.Event()
    monkeypatch.setitem(sys.modules, "import_gate", module)
    code = "import import_gate\nimport_gate.begun.set()\nimport_gate.may_end.wait(60)\n"
    (tmp_path / "slow_import.py").write_text(code)
    (tmp_path / "next_import.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    yield module
    for name in ("slow_import", "next_import"):
        sys.modules.pop(name, None)


def test_a_cell_waits_for_the_import_that_has_begun_and_lets_no_other_begin(gate):
    imports = IdleImports(["slow_import", "next_import"])
    imports.cell_begins()
    imports.cell_ends()
    assert gate.begun.wait(60)
    cell = threading.Thread(target=imports.cell_begins)
    cell.start()
    assert cell.is_alive()
    gate.may_end.set()
    cell.join(60)
    # The thread may have had its turn first, but it has none within the cell.
    before = "next_import" in sys.modules
    assert imports.thread.is_alive() or before
    imports.cell_ends()
    imports.thread.join(60)
    assert "next_import" in sys.modules


def test_no_import_begins_after_the_end(gate):
    imports = IdleImports(["slow_import", "next_import"])
    imports.cell_ends()
    assert gate.begun.wait(60)
    imports.end()
    gate.may_end.set()
    imports.thread.join(60)
    assert "next_import" not in sys.modules


def test_a_module_that_fails_ends_the_imports_without_a_word(capfd):
    imports = IdleImports(["there_is_no_such_module", "next_import"])
    imports.cell_ends()
    imports.thread.join(60)
    assert capfd.readouterr() == ("", "")


def test_nothing_is_imported_again():
    imports = IdleImports(["there_is_no_such_module", "sys"])
    imports.cell_ends()
    assert imports.thread is None
