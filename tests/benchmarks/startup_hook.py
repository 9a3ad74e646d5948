"""Cost of the startup hook for a start of Python without an order to record.

Two empty environments differ in the hook only: `epprof_nb.pth`, `epprof_nb.start` and the module
that they name. Python starts in both of them, one after the other and in turn first. The figure is
the median of the differences of the pairs, with its standard error by the bootstrap.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.shared.harness import header, median_error

FILES = ("_epprof_children.py", "epprof_nb.pth", "epprof_nb.start")
VARIABLE = "EPPROF_CHILDREN"


def environment(folder: Path, files: list[Path]) -> str:
    """Make an environment with some files in its site-packages; return its interpreter."""
    command = [sys.executable, "-m", "venv", "--without-pip", "--symlinks", folder]
    subprocess.run(command, check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for path in files:
        (packages / path.name).write_bytes(path.read_bytes())
    return str(folder / "bin/python")


def start(python: str, environ: dict[str, str]) -> float:
    """Return the milliseconds of a start of Python that runs nothing."""
    began = time.perf_counter()
    process = os.posix_spawn(python, [python, "-c", ""], environ)
    os.waitpid(process, 0)
    return 1e3 * (time.perf_counter() - began)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=500)
    pairs = parser.parse_args().pairs
    header(__file__)
    spec = importlib.util.find_spec("_epprof_children")
    if spec is None or spec.origin is None:
        sys.exit("epprof_nb is not installed here: pip install -e .")
    installed = Path(spec.origin).parent
    environ = {name: value for name, value in os.environ.items() if name != VARIABLE}
    with tempfile.TemporaryDirectory() as folder:
        plain = environment(Path(folder, "plain"), [])
        hooked = environment(Path(folder, "hooked"), [installed / name for name in FILES])
        for python in (plain, hooked):  # writes the bytecode
            start(python, environ)
        rows = []
        for number in range(pairs):
            order = (plain, hooked) if number % 2 else (hooked, plain)
            times = {python: start(python, environ) for python in order}
            rows.append((times[plain], times[hooked]))
    differences = [with_hook - without for without, with_hook in rows]
    without, with_hook = (statistics.median(column) for column in zip(*rows, strict=True))
    print(f"start of Python, {pairs} pairs: {without:.2f} ms without, {with_hook:.2f} ms with hook")
    print(f"difference: {statistics.median(differences):.3f} ms ± {median_error(differences):.3f}")


if __name__ == "__main__":
    main()
