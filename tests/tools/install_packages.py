"""Install packages into the environment of an interpreter, with uv in CI, else with pip.

Usage: python -m tests.tools.install_packages PYTHON ARGUMENT ...; arguments are those that
``pip install`` and ``uv pip install`` have in common.

uv takes a fifth of the processor time. CI names it in the variable ``EPPROF_UV``. What uv cannot
install, pip tries.
"""

from __future__ import annotations

import os
import subprocess
import sys


def install(python: object, *arguments: object) -> None:
    """Install into the environment of this interpreter; raise an error with pip's output."""
    what = [str(argument) for argument in ("-q", *arguments)]
    uv = os.environ.get("EPPROF_UV")
    with_uv = [uv, "pip", "install", "--python", str(python), *what]
    if uv and subprocess.run(with_uv, capture_output=True, check=False).returncode == 0:
        return
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-compile", *what],
        check=True, capture_output=True, text=True,
    )  # fmt: skip


def reason(error: subprocess.CalledProcessError) -> str:
    """Return the first error that pip wrote, or else that of its process."""
    lines = (error.stderr or "").splitlines()
    return next((line for line in lines if line.startswith("ERROR")), str(error))


if __name__ == "__main__":
    try:
        install(*sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(error.stderr)
