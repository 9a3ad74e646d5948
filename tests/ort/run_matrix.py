"""Run the ONNX Runtime tests against older releases of ONNX Runtime.

::

    python tests/ort/run_matrix.py [VERSION ...]

Each release is unpacked into a folder of its own, which comes first on the path of this Python; all
other packages, epprof_nb included, are those of this environment. Without a version: the oldest
release that can be observed, one in the middle, and one that is too old. The release that is
installed here is tested by pytest itself. A release that cannot be installed, or whose tests were
skipped, counts as failed. The installed release is also tested with the newest plugin provider of
OpenVINO, if there is one for this platform.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

VERSIONS = ("1.25.0", "1.28.0")
TOO_OLD = "1.24.4"
OPENVINO = "onnxruntime-ep-openvino"
ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("EPPROF_MATRIX", Path.home() / ".cache" / "epprof_nb" / "ort_matrix"))


def install(package: str, version: str | None, *needed: str) -> Path:
    """Install this release alone into a folder, unless it is there, and return the folder.

    Without a version it is the newest one. `needed` names packages that only this release needs.
    """
    folder = CACHE / f"{package}-{version or 'newest'}"
    complete = folder / "complete"
    if not complete.exists():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade"]
        subprocess.run(
            [*pip, "--target", folder, f"{package}=={version}" if version else package, *needed],
            check=True,
        )
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


def check_openvino() -> str:
    """Run what must hold beside the plugin provider of OpenVINO."""
    try:
        folder = install(OPENVINO, None)
    except subprocess.CalledProcessError:
        print(f"{OPENVINO}: there is none for this platform, or no network", flush=True)
        return ""
    done = run(folder, "tests.ort.openvino_session")
    print(f"{OPENVINO}: {'failed' if done.returncode else 'its sessions are observed'}", flush=True)
    return done.stdout + done.stderr if done.returncode else ""


def main() -> int:
    """Check every release; return 1 if one failed."""
    checks = {f"onnxruntime {v}": partial(check, v) for v in sys.argv[1:] or VERSIONS}
    if not sys.argv[1:]:
        checks[f"onnxruntime {TOO_OLD}"] = partial(check_too_old, TOO_OLD)
        checks[OPENVINO] = check_openvino
    failed = 0
    for name, one in checks.items():
        try:
            why = one()
        except subprocess.CalledProcessError as error:
            why = f"it could not be installed: {error}"
        if why:
            print(f"\n== {name} ==\n{why}")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
