"""Check the Binder configuration as repo2docker reads it, and run its installation.

Usage: python -m tests.tools.check_binder FOLDER. Needs ``pip install --group release``.

repo2docker detects a build pack in a copy of the repository and returns shell commands. The
commands of the notebook's user run here in a new virtual environment instead of a container; the
system packages are compared with what is installed. Then a notebook in the home folder profiles a
cell, and the first tutorial runs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from repo2docker.app import Repo2Docker

from tests.paths import ROOT

TUTORIAL = "notebooks/01_quickstart.ipynb"


def main(folder: str) -> None:
    """Run all steps in the folder; exit with what is wrong, if anything is."""
    work = Path(folder).resolve()
    home = work / "home"
    subprocess.run(["git", "clone", "-q", ROOT, home], check=True)
    os.chdir(home)
    pack = build_pack()
    check_badge()
    for package in Path("binder/apt.txt").read_text().split():
        if shutil.which(package) is None:
            sys.exit(f"binder/apt.txt asks for {package}, which is not installed here")

    version = pack.python_version
    python = interpreter(version)
    print(f"{type(pack).__name__}, Python {version}; running with {python}")
    kernel = work / "kernel"
    run(python, "-m", "venv", "--upgrade-deps", kernel)  # repo2docker's image has a current pip
    # If CI uses ccache, it finds the objects that were compiled in the repository.
    environment = os.environ | {
        "KERNEL_PYTHON_PREFIX": str(kernel), "CCACHE_BASEDIR": str(home),
    }  # fmt: skip
    for user, script in pack.get_assemble_scripts():
        if user == "${NB_USER}":
            print(script.strip())
            run("bash", "-ec", script, env=environment)
    new = {"cells": [code("%load_ext epprof_nb"), code("%%gpuprofile prof\nsum(range(1000))")]}
    Path("Untitled.ipynb").write_text(json.dumps(notebook(new)))
    for name in ("Untitled.ipynb", TUTORIAL):
        run(kernel / "bin" / "jupyter", "execute", "--timeout=300", "--kernel_name=python3", name)
        print(f"{name} runs")


def build_pack() -> object:
    """Return the build pack that repo2docker detects; exit if it is not the one for pip."""
    for pack_class in Repo2Docker().buildpacks:
        pack = pack_class(Repo2Docker().base_image)
        if pack.detect():
            break
    if type(pack).__name__ != "PythonBuildPack":
        sys.exit(f"repo2docker detects {type(pack).__name__}, not PythonBuildPack")
    return pack


def interpreter(version: str) -> str:
    """Return the Python of this version, or the running one if there is none."""
    found = shutil.which(f"python{version}")
    # A launcher of several versions (pyenv's) can be on the PATH without the version.
    works = (
        found and subprocess.run([found, "-V"], capture_output=True, check=False).returncode == 0
    )
    return found if works else sys.executable


def check_badge() -> None:
    """Exit unless README's badge opens the tutorial in the repository of pyproject.toml."""
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    repository = project["urls"]["Source"].removeprefix("https://github.com/")
    wanted = f"https://mybinder.org/v2/gh/{repository}/HEAD?urlpath=lab/tree/{TUTORIAL}"
    found = re.findall(r"https://mybinder\.org/v2/[^)\s]+", Path("README.md").read_text())
    if set(found) != {wanted}:
        sys.exit(f"README.md links to {found}, not to {wanted}")


def code(source: str) -> dict[str, object]:
    """Return a code cell."""
    cell = {"cell_type": "code", "execution_count": None, "id": f"c{len(source)}"}
    return cell | {"metadata": {}, "outputs": [], "source": source}


def notebook(content: dict[str, object]) -> dict[str, object]:
    """Return a notebook of format 4.5."""
    return {"metadata": {}, "nbformat": 4, "nbformat_minor": 5} | content


def run(*command: object, **options: object) -> None:
    """Run a command; exit with its output if it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **options,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-5000:]}")


if __name__ == "__main__":
    main(sys.argv[1])
