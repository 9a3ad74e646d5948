"""Run the ONNX Runtime tests against several released wheels, each in an environment of its own.

::

    python tests/ort/run_matrix.py [VERSION ...]

The package is taken from this checkout, with the native core that is built in it. A version whose
environment cannot be made, or whose tests were skipped, fails.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

VERSIONS = ("1.25.0", "1.28.0", "1.31.1")
TOO_OLD = "1.24.4"
NEEDS = (
    "onnx", "numpy", "pandas>=2.3", "pyarrow", "ipython", "traitlets", "click", "anywidget",
    "google-re2", "matplotlib", "nvidia-ml-py", "tqdm", "pytest", "pytest-timeout",
)  # fmt: skip
ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("EPPROF_MATRIX", Path.home() / ".cache" / "epprof_nb" / "ort_matrix"))


def environment(version: str) -> Path:
    """Make, or find, a virtual environment with this release; return its Python."""
    home = CACHE / version
    python = home / "bin" / "python"
    needs = "\n".join(NEEDS)
    complete = home / "complete"
    if not complete.exists() or complete.read_text() != needs:
        venv.create(home, with_pip=True, clear=True)
        subprocess.run(
            [python, "-m", "pip", "install", "-q", f"onnxruntime=={version}", *NEEDS], check=True
        )
        complete.write_text(needs)
    return python


def check(version: str) -> str:
    """Run the tests; return what went wrong, empty if nothing did."""
    try:
        python = environment(version)
    except subprocess.CalledProcessError as error:
        return f"no environment: {error}"
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-rs", "tests/ort", "-p", "no:cacheprovider"],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    summary = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr
    print(f"{version}: {summary}", flush=True)
    if done.returncode:
        return done.stdout[-6000:] + done.stderr[-2000:]
    if not re.search(r"\d+ passed", summary):
        return "nothing ran"
    if "skipped" in summary:
        return f"tests were skipped:\n{done.stdout[-2000:]}"
    return ""


def check_too_old() -> str:
    """Run what must hold with a release that cannot be observed."""
    try:
        python = environment(TOO_OLD)
    except subprocess.CalledProcessError as error:
        return f"no environment: {error}"
    done = subprocess.run(
        [python, "-m", "tests.ort.too_old"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    print(f"{TOO_OLD}: {'refused clearly' if not done.returncode else 'failed'}", flush=True)
    return done.stdout + done.stderr if done.returncode else ""


def main() -> int:
    versions = sys.argv[1:] or VERSIONS
    # Much of it is waiting, for downloads and for runs: two releases at a time.
    with ThreadPoolExecutor(2) as pool:
        too_old = None if sys.argv[1:] else pool.submit(check_too_old)
        failed = {v: why for v, why in zip(versions, pool.map(check, versions), strict=True) if why}
    if too_old and (why := too_old.result()):
        failed[TOO_OLD] = why
    for version, why in failed.items():
        print(f"\n== onnxruntime {version} ==\n{why}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
