"""Run the tests of Python stacks with the other releases of CPython on this machine.

::

    python -m tests.run_pythons [VERSION ...]

Frames differ between releases. Each release is looked for as ``python3.14`` on the path, and among
those of pyenv. It gets an environment with one wheel of the checkout, which serves all releases. A
release that is not here, or for which there is no wheel of a dependency, is skipped, which is
printed. The variable ``EPPROF_MATRIX`` is the folder for the environments.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.run_matrix import CACHE, PYTEST, ROOT, report, verdict
from tests.tools import install_packages

VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
PACKAGES = (
    "pytest", "pytest-rerunfailures", "pytest-timeout", "hypothesis", "greenlet", "gevent",
)  # fmt: skip
TESTS = (
    "tests/unit/recording/stacks",
    "tests/unit/recording/samples",
    "tests/stress/test_stacks.py",
    "tests/stress/test_host_samples.py",
    "tests/stress/test_stack_callers.py",
)


def interpreter(version: str) -> str | None:
    """Return the path of a release of this minor version; None if there is none."""
    found = shutil.which(f"python{version}")
    # A shim of pyenv is there for each version that it knows, chosen or not.
    if found and subprocess.run([found, "--version"], capture_output=True, check=False).returncode:
        found = None
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    installed = sorted(root.glob(f"versions/{version}.*/bin/python{version}"))
    return found or (str(installed[-1]) if installed else None)


def build() -> Path:
    """Build the wheel of this checkout and return its path."""
    folder = CACHE / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    # ccache takes paths relative to the folder of the build. Beside that of an installation, all
    # are equal, and nothing is compiled again.
    build_folder = Path("build", "other_pythons")
    shutil.rmtree(ROOT / build_folder, ignore_errors=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder,
         "-C", f"build-dir={build_folder}", ROOT],
        check=True,
    )  # fmt: skip
    return next(folder.glob("*.whl"))


def install(wheel: Path, python: str, version: str) -> Path:
    """Install the wheel into an environment of this interpreter, and return its Python."""
    folder = CACHE / f"python-{version}"
    subprocess.run([python, "-m", "venv", "--clear", "--without-pip", folder], check=True)
    made = folder / "bin" / "python"
    install_packages.install(made, "--only-binary", ":all:", wheel, *PACKAGES)
    # Behind the installed package, which hides the one of the checkout.
    packages = next(folder.glob("lib/python3*/site-packages"))
    (packages / "checkout.pth").write_text(f"{ROOT}\n", encoding="utf-8")
    return made


def check(wheel: Path, version: str) -> tuple[str, str]:
    """Test one release; return a line about it, and the problem or an empty text."""
    python = interpreter(version)
    if python is None:
        return "SKIPPED, it is not on this machine", ""
    try:
        made = install(wheel, python, version)
    except subprocess.CalledProcessError as error:
        return f"SKIPPED, it could not be installed: {install_packages.reason(error)}", ""
    changed = {"PYTEST_ADDOPTS": "", "PYTHONDONTWRITEBYTECODE": "", "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [made, "-m", *PYTEST, "--import-mode=append", *TESTS],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, **changed},
    )  # fmt: skip
    return verdict(done)


def main(*versions: str) -> int:
    """Test the given versions, or all others than this one; return 1 if one failed."""
    this = f"{sys.version_info.major}.{sys.version_info.minor}"
    wheel = build()
    chosen = versions or [version for version in VERSIONS if version != this]
    return report((f"Python {version}", *check(wheel, version)) for version in chosen)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
