"""Run tests with other releases of the packages that epprof_nb works with.

::

    python -m tests.run_matrix [PACKAGE [VERSION ...]]

Each release is unpacked into a separate folder, which comes first on the path of this Python. All
other packages, epprof_nb included, come from this environment. pytest itself tests the release that
is installed here. Without arguments, all releases of `MATRIX` are tested; with a
package, its releases or the given ones.

A release fails if it cannot be installed, if another one is imported, if a test fails, and if tests
are skipped. The variable ``EPPROF_TORCH_INDEX`` is the address of a package index with builds of
PyTorch for the CPU, and ``EPPROF_MATRIX`` the folder for the releases.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.tools import install_packages

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[1]
CACHE = Path(os.environ.get("EPPROF_MATRIX", Path.home() / ".cache" / "epprof_nb" / "matrix"))
PYTEST = ("pytest", "-q", "-p", "no:cacheprovider")
DEPENDENT = ("-m", "not release_independent")
GRAPHS = sorted(str(path) for path in (ROOT / "tests" / "ep" / "graphs").glob("test_graph*.py"))


@dataclass(frozen=True)
class Releases:
    """Releases of a package, and the module that tests each of them.

    Parameters
    ----------
    package
        Name on the package index.
    versions
        None stands for the newest release.
    command
        The module and its arguments.
    needed
        Packages that only these releases need.
    build
        The local version that the wheels carry, ``"+cpu"`` for example.
    optional
        A release that cannot be installed is skipped, which is printed.
    """

    package: str
    versions: tuple[str | None, ...]
    command: tuple[str, ...]
    needed: tuple[str, ...] = ()
    build: str = ""
    optional: bool = False


TESTS_OF_JAX = tuple(
    sorted(str(path.relative_to(ROOT)) for path in Path(ROOT, "tests/frameworks").glob("test_jax*"))
)

MATRIX = (
    # The oldest release that can be observed; one in the middle, without the tests of single
    # kernels, which the oldest and the installed release have in common; one that is too old.
    Releases(
        "onnxruntime", ("1.25.0",), (*PYTEST, "tests/ort", "tests/ep", *DEPENDENT),
    ),
    Releases(
        "onnxruntime", ("1.28.0",),
        (*PYTEST, "tests/ort", *GRAPHS, "tests/ep/test_registration.py",
         "tests/ep/test_profiling.py", *DEPENDENT),
    ),
    Releases("onnxruntime", ("1.24.4",), ("tests.ort.too_old",)),
    # Intel's plugin provider does not exist for all platforms.
    Releases("onnxruntime-ep-openvino", (None,), ("tests.ort.openvino_session",), optional=True),
    # The oldest IPython.
    Releases(
        "ipython", ("8.12.0",),
        (*PYTEST, "tests/integration/test_tracebacks.py", "tests/integration/test_magic.py",
         "tests/integration/test_magic_faults.py"),
        needed=("backcall", "decorator", "pickleshare"),
    ),
    Releases(
        "torch", ("2.13.0",),
        (*PYTEST, "tests/frameworks", "tests/unit/recording/statements/test_torch_dynamo.py",
         "tests/unit/recording/out_of_memory/test_torch.py", "tests/notebooks",
         "-k", "not notebooks or pytorch", "--ignore-glob", "*test_jax*",
         "--ignore-glob", "*transformers*"),
        needed=("filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "networkx", "setuptools",
                "sympy", "typing-extensions"),
        build="+cpu", optional=True,
    ),
    Releases(
        "jax", ("0.8.2", "0.10.2"), (*PYTEST, *TESTS_OF_JAX),
        needed=("jaxlib=={version}", "ml-dtypes", "opt-einsum", "scipy"), optional=True,
    ),
)  # fmt: skip


def install(releases: Releases, version: str | None) -> Path:
    """Install this release alone into a folder, unless it is there, and return the folder."""
    exact = f"{version}{releases.build}" if version else None
    folder = CACHE / f"{releases.package}-{exact or 'newest'}"
    complete = folder / "complete"
    if not complete.exists():
        wanted = f"{releases.package}=={exact}" if exact else releases.package
        needed = [name.format(version=version) for name in releases.needed]
        index = os.environ.get("EPPROF_TORCH_INDEX") if releases.package == "torch" else None
        install_packages.install(
            sys.executable, "--no-deps", "--upgrade", "--target", folder,
            *(["--extra-index-url", index] if index else []), wanted, *needed,
        )  # fmt: skip
        complete.touch()
    return folder


def run(release: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the release in this folder in place of the installed one."""
    path = os.pathsep.join([str(release), str(ROOT)])
    # Nothing is compiled yet: what is imported is compiled once, and kept.
    changed = {"PYTHONPATH": path, "PYTEST_ADDOPTS": "", "PYTHONDONTWRITEBYTECODE": ""}
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, **changed},
    )  # fmt: skip


def check(releases: Releases, version: str | None) -> tuple[str, str]:
    """Test one release; return a line about it, and the problem or an empty text."""
    try:
        folder = install(releases, version)
    except subprocess.CalledProcessError as error:
        problem = f"it could not be installed: {install_packages.reason(error)}"
        return (f"SKIPPED, {problem}", "") if releases.optional else ("failed", problem)
    program = f"from importlib.metadata import version; print(version({releases.package!r}))"
    found = run(folder, "-c", program).stdout.strip()
    if version and found != version + releases.build:
        return "failed", f"{found or 'nothing'} would be tested instead"
    done = run(folder, "-m", *releases.command)
    if releases.command[0] == "pytest":
        return verdict(done)
    return ("failed", done.stdout + done.stderr) if done.returncode else ("passed", "")


def verdict(done: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    """Return pytest's last line, and the end of its output if a test failed or was skipped."""
    summary = (done.stdout.strip() or done.stderr.strip() or "nothing ran").splitlines()[-1]
    if done.returncode == 0 and re.search(r"\d+ passed", summary) and "skipped" not in summary:
        return summary, ""
    # Its own line begins like that of a failed test.
    return summary, done.stdout[-6000:].replace("\nSKIPPED ", "\nFAILED ") + done.stderr[-2000:]


def report(results: Iterable[tuple[str, str, str]]) -> int:
    """Print a line about each release, then the problems; return 1 if there are any."""
    problems = {}
    for name, line, problem in results:
        print(f"{name}: {'FAILED: ' if problem else ''}{line}", flush=True)
        if problem:
            problems[name] = problem
    for name, problem in problems.items():
        print(f"\n== {name} ==\n{problem}")
    return 1 if problems else 0


def main(package: str | None = None, *versions: str) -> int:
    """Test the releases of a package, or of all; return 1 if one failed."""
    chosen = [releases for releases in MATRIX if package in (None, releases.package)]
    if not chosen:
        names = ", ".join(dict.fromkeys(releases.package for releases in MATRIX))
        sys.exit(f"no tests for {package}; there are tests for {names}")
    pairs = [(releases, version) for releases in chosen for version in releases.versions]
    if versions:
        known = {version: releases for releases, version in pairs}
        pairs = [(known.get(version, chosen[0]), version) for version in versions]
    return report(
        (f"{releases.package} {version or '(newest)'}", *check(releases, version))
        for releases, version in pairs
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
