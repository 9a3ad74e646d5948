"""Run the tests of PyTorch against a release for the CPU, in an environment of its own.

::

    python -m tests.frameworks.run_torch_matrix [VERSION ...]

Each release is unpacked into a folder of its own, as in ``tests/ort/run_matrix.py``. The variable
``EPPROF_TORCH_INDEX`` is the address of a package index with builds for the CPU. Where such a build
cannot be had, the release is skipped, which is printed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

from tests.ort.run_matrix import install, run

VERSIONS = ("2.13.0",)
NEEDED = (
    "filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "networkx", "setuptools", "sympy",
    "typing-extensions",
)  # fmt: skip


def check(version: str) -> str:
    """Run the tests; return what went wrong, or an empty text."""
    index = os.environ.get("EPPROF_TORCH_INDEX")
    options = ["--extra-index-url", index] if index else []
    try:
        release = install("torch", f"{version}+cpu", *NEEDED, *options)
    except subprocess.CalledProcessError as error:
        print(f"torch {version}: SKIPPED, it could not be installed: {error}", flush=True)
        return ""
    done = run(
        release, "pytest", "-q", "-rs", "tests/frameworks", "tests/unit/test_torch_dynamo.py",
        "tests/notebooks", "-k", "not notebooks or pytorch",
        "--ignore-glob", "*test_jax*", "-p", "no:cacheprovider",
    )  # fmt: skip
    summary = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr
    print(f"torch {version}: {summary}", flush=True)
    if done.returncode:
        return done.stdout[-6000:] + done.stderr[-2000:]
    if "skipped" in summary or not re.search(r"\d+ passed", summary):
        return f"tests were skipped:\n{done.stdout[-2000:]}"
    return ""


def main() -> int:
    """Check every release; return 1 if one failed."""
    failed = 0
    for version in sys.argv[1:] or VERSIONS:
        why = check(version)
        if why:
            print(f"\n== torch {version} ==\n{why}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
