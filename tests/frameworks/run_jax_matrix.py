"""Run the tests of JAX against a release for the CPU, in an environment of its own.

::

    python -m tests.frameworks.run_jax_matrix [VERSION ...]

Each release is unpacked into a folder of its own, as in ``tests/ort/run_matrix.py``. A release that
cannot be installed is skipped, which is printed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.ort.run_matrix import install, run

VERSIONS = ("0.8.2", "0.10.2")
NEEDED = ("ml-dtypes", "opt-einsum", "scipy")


def check(version: str) -> str:
    """Run the tests; return what went wrong, or an empty text."""
    try:
        release = install("jax", version, f"jaxlib=={version}", *NEEDED)
    except subprocess.CalledProcessError as error:
        print(f"jax {version}: SKIPPED, it could not be installed: {error}", flush=True)
        return ""
    tests = sorted(map(str, Path("tests/frameworks").glob("test_jax*.py")))
    done = run(release, "pytest", "-q", "-rs", *tests, "-p", "no:cacheprovider")
    summary = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr
    print(f"jax {version}: {summary}", flush=True)
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
            print(f"\n== jax {version} ==\n{why}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
