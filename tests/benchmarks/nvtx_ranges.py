"""Cost of a range of NVTX, in C and by the Python package ``nvtx``.

Each copy of NVTX asks for a tool at its first call. The first part therefore compiles copies of one
library: without a tool, with a tool whose functions are empty, and with epprof_nb. The package has
one copy, so that the second part starts a process for each measurement.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import epprof_nb
from epprof_nb.recording.nvtx.injection import VARIABLE
from tests.benchmarks.shared.harness import header, paired, show
from tests.helpers.nvtx_libraries import compiled

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCES = Path(__file__).parent / "native"
EMPTY = "empty tool"


def libraries(folder: Path) -> tuple[dict[str, ctypes.CDLL], Path]:
    """Return a copy of the library for each tool that it asks, and the path of the empty tool."""
    options = "-shared", "-fPIC", "-O2"
    tool = compiled(SOURCES / "nvtx_empty.cpp", folder / "empty.so", *options)
    source = compiled(SOURCES / "nvtx_loop.cpp", folder / "loop.so", *options)
    ours = os.environ[VARIABLE]
    made = {}
    for name, value in (("no tool", ""), (EMPTY, str(tool)), ("epprof_nb", ours)):
        os.environ[VARIABLE] = value
        made[name] = ctypes.CDLL(shutil.copy(source, folder / f"{len(made)}.so"))
        made[name].push_and_pop(b"range", 1)
    os.environ[VARIABLE] = ours
    return made, tool


def in_c(made: dict[str, ctypes.CDLL], rounds: int, number: int) -> None:
    """Print the time of a range in C."""

    def ranges(name: str) -> Callable[[], float]:
        def measure() -> float:
            begin = time.thread_time()
            made[name].push_and_pop(b"range", number)
            return (time.thread_time() - begin) / number

        return measure

    def in_a_profile() -> float:
        with epprof_nb.profile() as prof:
            seconds = ranges("epprof_nb")()
        assert len(prof.ops) == number, "ranges were lost"
        return seconds

    variants = {name: ranges(name) for name in made} | {"epprof_nb, in a profile": in_a_profile}
    print("Push and pop in C, processor time")
    results = paired(variants, rounds)
    show(results, (EMPTY,), "ns", 1e9)
    pairs = zip(results["epprof_nb, in a profile"], results[EMPTY], strict=True)
    added = [(ours - empty) * 1e9 for ours, empty in pairs]
    print(f"  a profile adds {statistics.median(added):.0f} ns "
          f"({min(added):.0f}-{max(added):.0f}) to a push and a pop\n")  # fmt: skip


IN_PYTHON = """
import sys, time, timeit
if sys.argv[1] != "no tool":
    import epprof_nb
import nvtx

def ranges():
    nvtx.push_range("range")
    nvtx.pop_range()

def measure():
    return timeit.timeit(ranges, number=20_000, timer=time.thread_time) / 20_000

ranges()
if sys.argv[1] == "a profile":
    with epprof_nb.profile():
        print(measure())
else:
    print(measure())
"""


def in_python(tool: Path, rounds: int) -> None:
    """Print the time of a range of the package ``nvtx``."""

    def measure(how: str, value: str) -> Callable[[], float]:
        def run() -> float:
            done = subprocess.run(
                [sys.executable, "-c", IN_PYTHON, how], env=os.environ | {VARIABLE: value},
                check=True, capture_output=True, text=True,
            )  # fmt: skip
            return float(done.stdout)

        return run

    variants = {
        "no tool": measure("no tool", ""),
        EMPTY: measure("no tool", str(tool)),
        "epprof_nb, no profile": measure("no profile", ""),
        "epprof_nb, in a profile": measure("a profile", ""),
    }
    print("Push and pop of the package nvtx, processor time")
    show(paired(variants, rounds), ("no tool", EMPTY), "ns", 1e9)


def main() -> None:
    """Print all measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--number", type=int, default=20_000, help="ranges in a round")
    options = parser.parse_args()
    header("Ranges of NVTX")
    with tempfile.TemporaryDirectory() as folder:
        made, tool = libraries(Path(folder))
        in_c(made, options.rounds, options.number)
        in_python(tool, options.rounds)


if __name__ == "__main__":
    main()
