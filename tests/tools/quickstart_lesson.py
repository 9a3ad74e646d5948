"""Repeat the comparison of the quickstart and count how often it shows the improvement.

Usage: python -m tests.tools.quickstart_lesson [--runs 20] [--load 2]

The cells before the comparison run once, and the compared cells in each run, in a real kernel. With
``--load N``, N processes keep a processor busy meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import nbformat
from nbclient import NotebookClient

from tests.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTEBOOK = ROOT / "notebooks" / "01_quickstart.ipynb"
MAGIC = "%%gpuprofile"
RESULT = "print(comparison[['before', 'after']].to_json())"


@contextlib.contextmanager
def busy_processors(count: int) -> Iterator[None]:
    """Keep `count` processors busy."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main() -> None:
    """Print the numbers of each run, and the number of runs in which all of them fell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--load", type=int, default=0)
    given = parser.parse_args()
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    last = next(i for i, cell in enumerate(cells) if "comparison =" in cell.source)
    compared = [
        cell
        for cell in cells[:last]
        if cell.source.startswith((f"{MAGIC} before", f"{MAGIC} after"))
    ]
    assert len(compared) == 2
    result = nbformat.v4.new_code_cell(RESULT)
    notebook.cells = [*cells[: last + 1], result]
    client = NotebookClient(notebook, timeout=600, kernel_name="python3")
    better: dict[str, int] = {}
    with busy_processors(given.load), client.setup_kernel(cwd=str(NOTEBOOK.parent)):
        for index, cell in enumerate(cells[: last + 1]):
            client.execute_cell(cell, index)
        for run in range(given.runs):
            for cell in (*compared, cells[last], result):
                client.execute_cell(cell, notebook.cells.index(cell))
            numbers = json.loads(result.outputs[0].text)
            row = []
            for name, before in numbers["before"].items():
                after = numbers["after"][name]
                better[name] = better.get(name, 0) + (after < before)
                row.append(f"{name} {before:8.1f} -> {after:8.1f}")
            print(f"{run + 1:3}   " + "   ".join(row))
    print(f"\n{given.runs} runs with {given.load} busy processes; less than before:")
    for name, count in better.items():
        print(f"  {name:16} {count} of {given.runs}")


if __name__ == "__main__":
    main()
