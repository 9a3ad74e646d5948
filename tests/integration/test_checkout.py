"""The repository root works: a fresh clone, installed in place, from Python and from a kernel."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest

from epprof_nb import _native
from tests.helpers.jupyter_kernels import run_notebook
from tests.paths import ROOT

# Compiling the same code again would take minutes of processor time: instead of the compiler, this
# writes empty objects, and links the installed module from them.
LAUNCHER = f"""#!/bin/sh
case "$*" in *_native.dir*) ;; *) exec "$@" ;; esac
while [ "$1" != -o ]; do shift; done
case $2 in *.o) : > "$2" ;; *) cp {shlex.quote(_native.__file__)} "$2" ;; esac
"""

WHERE = "import epprof_nb, epprof_nb._native as native; print(epprof_nb.__file__, native.__file__)"


def output_of(*command, **options) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A fresh clone of the repository."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("needs git and the repository")
    folder = tmp_path_factory.mktemp("clone") / "epprof_nb"
    output_of("git", "clone", "-q", ROOT, folder)
    return folder


@pytest.fixture(scope="module")
def python(clone):
    """Python of an environment with the clone installed in place, and this one's packages."""
    home = clone.parent / "venv"
    venv.create(home)
    python = home / "bin" / "python"
    path = output_of(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    # Packages of this environment, but not its path files: its own editable install is one.
    outer = [folder for folder in sys.path if folder.endswith("site-packages")]
    Path(path.strip(), "outer.pth").write_text("\n".join(outer))
    no_isolation = (
        find_spec("scikit_build_core") and shutil.which("cmake") and shutil.which("ninja")
    )
    launcher = clone.parent / "launcher"
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)
    names = [f"CMAKE_{language}_{step}_LAUNCHER" for language in ("C", "CXX")
             for step in ("COMPILER", "LINKER")]  # fmt: skip
    output_of(
        sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps",
        *(["--no-build-isolation"] if no_isolation else []), "-e", clone,
        env=os.environ | dict.fromkeys(names, str(launcher)),
    )  # fmt: skip
    return python


def in_clone(clone, printed: str) -> bool:
    """Whether both the package and the native module belong to the clone."""
    package, native = printed.split()
    return package.startswith(f"{clone}/") and native.startswith(f"{clone.parent}/")


def test_python_started_in_the_root_imports_the_native_module(clone, python, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert in_clone(clone, output_of(python, "-c", WHERE, cwd=clone))


@pytest.mark.parametrize("folder", [".", "notebooks"])
def test_a_kernel_started_in_the_checkout_profiles_a_cell(
    clone, python, folder, tmp_path, monkeypatch
):
    import nbformat

    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    kernel = tmp_path / "kernels" / "clone" / "kernel.json"
    kernel.parent.mkdir(parents=True)
    command = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel.write_text(json.dumps({"argv": command, "display_name": "clone", "language": "python"}))
    sources = ["%load_ext epprof_nb", "%%gpuprofile prof\nx = sum(range(1000))", WHERE]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in sources])
    run_notebook(notebook, cwd=clone / folder, timeout_s=120, kernel_name="clone")
    _, profiled, where = notebook.cells
    assert "wall" in profiled.outputs[0].data["text/plain"]
    assert in_clone(clone, where.outputs[0].text)


def test_a_checkout_that_was_not_built_says_how_to_install_it(clone):
    # Without the packages of any environment, as when the checkout is installed in none.
    code = "from epprof_nb import _native"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=clone, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "ImportError" in done.stderr
    assert str(clone / "epprof_nb") in done.stderr
    assert "`pip install -e .`" in done.stderr
