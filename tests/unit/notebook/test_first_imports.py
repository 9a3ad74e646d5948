"""Modules that the first profiled cell of a kernel does not wait for."""

import subprocess
import sys

import pytest

CELL = """%%gpuprofile prof
import time
import epprof_nb
for i in range(40):  # steps that become slower, so that their drift is estimated
    with epprof_nb.op("step", index=i):
        time.sleep(longer * (0.001 + 0.0002 * i))
"""
FIRST_CELL = f"""
import sys
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

shell = InteractiveShell.instance(config=Config(HistoryManager={{"hist_file": ":memory:"}}))
shell.run_line_magic("load_ext", "epprof_nb")
print("load_ext", *sys.modules)
shell.user_ns["longer"] = int(sys.argv[1])
shell.run_cell({CELL!r})
print("picture", *sys.modules)
print("findings", *shell.user_ns["prof"].insights()["kind"])
"""


@pytest.fixture(scope="module")
def imported() -> dict[str, set[str]]:
    """Modules after ``%load_ext`` and after a picture that needs a drift, and kinds of findings."""
    for longer in (1, 10, 50):  # other processes may delay steps by more than they differ
        found = after_first_cell(longer)
        if "drift" in found["findings"]:
            return found
    raise AssertionError(f"no drift was found, but {found['findings']}")


def after_first_cell(longer: int) -> dict[str, set[str]]:
    command = [sys.executable, "-c", FIRST_CELL, str(longer)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = {words[0]: set(words[1:]) for words in map(str.split, run.stdout.splitlines()) if words}
    return {name: lines[name] for name in ("load_ext", "picture", "findings")}


def test_the_first_picture_imports_neither_scipy_nor_pandas(imported):
    assert "epprof_nb.views.renderers.png" in imported["picture"]
    assert not imported["picture"] & {"scipy", "pandas", "pyarrow", "matplotlib"}


def test_loading_the_extension_imports_nothing_that_observes_onnx_runtime(imported):
    assert "epprof_nb.onnxruntime.installation" in imported["load_ext"]
    assert "epprof_nb.notebook.magic" in imported["load_ext"]
    for part in ("onnxruntime.patches", "recording.session.session", "profiles", "views.view"):
        assert f"epprof_nb.{part}" not in imported["load_ext"]
    assert not imported["load_ext"] & {"scipy", "pandas", "PIL", "onnxruntime"}


def test_loading_the_extension_imports_neither_analyses_nor_numpy(imported):
    for part in ("analysis", "data", "host", "recording.delays"):
        assert f"epprof_nb.{part}" not in imported["load_ext"]
    assert "numpy" not in imported["load_ext"]
    assert "numpy" in imported["picture"]
