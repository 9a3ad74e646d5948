"""Run the ONNX Runtime tests against older releases of ONNX Runtime.

::

    python tests/ort/run_matrix.py [VERSION ...]

Each release is unpacked into a folder of its own, which comes first on the path of this Python; all
other packages, epprof_nb included, are those of this environment. Without a version: the oldest
release that can be observed, one in the middle, and one that is too old. The release that is
installed here is tested by pytest itself. A release that cannot be installed, or whose tests were
skipped, counts as failed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

VERSIONS = ("1.25.0", "1.28.0")
TOO_OLD = "1.24.4"
ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("EPPROF_MATRIX", Path.home() / ".cache" / "epprof_nb" / "ort_matrix"))


def install(package: str, version: str, *needed: str) -> Path:
    """Install this release alone into a folder, unless it is there, and return the folder.

    `needed` names packages that only this release needs.
    """
    folder = CACHE / f"{package}-{version}"
    complete = folder / "complete"
    if not complete.exists():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade"]
        subprocess.run([*pip, "--target", folder, f"{package}=={version}", *needed], check=True)
        complete.touch()
    return folder


def run(release: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a module of the checkout's with the release in this folder in place of the installed."""
    path = os.pathsep.join([str(release), str(ROOT)])
    changed = {"PYTHONPATH": path, "PYTEST_ADDOPTS": "", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, **changed},
    )  # fmt: skip


def check(version: str) -> str:
    """Run the tests; return what went wrong, or an empty text."""
    done = run(
        install("onnxruntime", version), "pytest", "-q", "-rs", "tests/ort", "tests/ep",
        "-m", "not release_independent", "-p", "no:cacheprovider",
    )  # fmt: skip
    summary = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr
    print(f"onnxruntime {version}: {summary}", flush=True)
    if done.returncode:
        return done.stdout[-6000:] + done.stderr[-2000:]
    if not re.search(r"\d+ passed", summary):
        return "nothing ran"
    if "skipped" in summary:
        return f"tests were skipped:\n{done.stdout[-2000:]}"
    return ""


def check_too_old(version: str) -> str:
    """Run what must hold with a release that cannot be observed."""
    done = run(install("onnxruntime", version), "tests.ort.too_old")
    print(
        f"onnxruntime {version}: {'failed' if done.returncode else 'refused clearly'}", flush=True
    )
    return done.stdout + done.stderr if done.returncode else ""


def main() -> int:
    """Check every release; return 1 if one failed."""
    checks = dict.fromkeys(sys.argv[1:] or VERSIONS, check)
    if not sys.argv[1:]:
        checks[TOO_OLD] = check_too_old
    failed = 0
    for version, one in checks.items():
        try:
            why = one(version)
        except subprocess.CalledProcessError as error:
            why = f"it could not be installed: {error}"
        if why:
            print(f"\n== onnxruntime {version} ==\n{why}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
