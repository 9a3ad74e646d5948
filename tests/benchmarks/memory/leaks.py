"""Leaks planted at random lines, against the lines that findings on growing memory name.

::

    python -m tests.benchmarks.memory.leaks [--device host] [--trials 40] [--steps 50] [--seed 0]

Each trial runs a program as cells of an IPython shell, the last one under ``%%gpuprofile``, with
lines in between that the seed chooses. Half of the trials leak 1 MB a step; the others keep memory
as programs do that leak nothing. The GPU machine runs ``--device cuda``, with PyTorch.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import random
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.benchmarks.shared.harness import header
from tests.benchmarks.shared.leaking_programs import CLEAN, LEAKING, LEAKS

if TYPE_CHECKING:
    from tests.benchmarks.shared.leaking_programs import Program

_LIBRARIES = {"cuda": "import torch", "host": "import numpy; from epprof_nb import host"}
_CALLS = {
    "cuda": {
        "NEW": "torch.full((int(({}) * 250_000),), 1.0, device='cuda')",
        "USE": "{}.add_(1)",
        "LOAD": "torch.zeros(int(({}) * 250_000)).cuda()",
    },
    "host": {
        "NEW": "host.empty(int(({}) * 250_000))",
        "USE": "host.launch(lambda array: array.fill(1), {})",
        "LOAD": "host.to_device(numpy.zeros(int(({}) * 250_000), numpy.float32))",
    },
}
_MAGIC = "%%gpuprofile prof --detail memory"


class Planted(NamedTuple):
    """A program with its lines chosen: cells, a module, and where it leaks; line 0 for nowhere."""

    name: str
    cells: list[str]
    module: str
    number: int
    in_module: bool
    line: int


def planted(name: str, program: Program, device: str, steps: int, number: int) -> Planted:
    """Choose the lines, and write the allocations of a device."""
    chance = random.Random(number)

    def padding() -> list[str]:
        kind = chance.randrange(3)
        if not kind:
            return [f"_p = {chance.randrange(9)}"]
        mine = f"_a{chance.randrange(1000)}"
        return [f"{mine} = NEW({chance.randint(1, 4)})", f"USE({mine})", f"del {mine}"][: 1 + kind]

    def written(text: str) -> str:
        lines = []
        for line in text.strip().split("\n"):
            indent = line[: len(line) - len(line.lstrip())]
            is_padding = line.strip() == "# padding"
            more = [one for _ in range(chance.randrange(4)) for one in padding()]
            lines += [indent + one for one in more] if is_padding else [line]
        text = "\n".join(lines).replace("STEPS", str(steps)).replace("LIBRARY", _LIBRARIES[device])
        text = text.replace("MODULE", f"planted_{number}")
        for call, form in _CALLS[device].items():
            text = _replaced(text, call, form)
        return text

    cells = [written(cell) for cell in program.cells.split("\n# %%\n")]
    cells[-1] = f"{_MAGIC}\n{cells[-1]}"
    module = written(program.module)
    cells[0] = f"{_LIBRARIES[device]}\n{cells[0]}"
    places = [
        (in_module, line)
        for in_module, text in ((True, module), *((False, cell) for cell in cells))
        for line, code in enumerate(text.split("\n"), 1)
        if code.endswith(LEAKS)
    ]
    return Planted(name, cells, module, number, *(places or [(False, 0)])[0])


def _replaced(text: str, call: str, form: str) -> str:
    """Write a call, whose argument can have parentheses."""
    while found := re.search(rf"\b{call}\(", text):
        end, depth = found.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = text[: found.start()] + form.format(text[found.end() : end - 1]) + text[end:]
    return text


def run(shell: Any, program: Planted, folder: Path) -> Any:
    """Run a program and return its profile."""
    (folder / f"planted_{program.number}.py").write_text(program.module, encoding="utf-8")
    importlib.invalidate_caches()
    for cell in program.cells:
        result = shell.run_cell(cell, store_history=True)
        result.raise_error()
    prof = shell.user_ns["prof"]
    shell.reset()
    if module := sys.modules.get(f"planted_{program.number}"):
        vars(module).clear()
    gc.collect()
    return prof


def named(prof: Any) -> tuple[str, int]:
    """Return the file or cell, and the line, of the finding on growing memory."""
    found = prof.insights()
    found = found[found["kind"] == "growing memory"]
    if not len(found):
        return "", 0
    row = found.iloc[0]
    line = row["line"]
    return str(row["cell"]), -1 if line != line or line is None else int(line)


def main() -> None:
    """Run the trials and print those that are wrong, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "host"), default="host")
    parser.add_argument("--trials", type=int, default=40, help="trials with leaks, and without")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    from epprof_nb.notebook import extension

    header(f"Leaks of 1 MB a step in {args.steps} steps, on the {args.device} device")
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    shell = InteractiveShell.instance(config=config)
    extension.load_ipython_extension(shell)
    counts: Counter[str] = Counter()
    # Code below the working directory is the user's.
    with tempfile.TemporaryDirectory() as temporary, contextlib.chdir(temporary):
        sys.path.insert(0, temporary)
        for title, programs in (("leaking", LEAKING), ("clean", CLEAN)):
            usable = {n: p for n, p in programs.items() if args.device in p.devices}
            for trial in range(args.trials):
                name = list(usable)[trial % len(usable)]
                number = 10_000 * args.seed + 2 * trial + (title == "clean")
                program = planted(name, usable[name], args.device, args.steps, number)
                random.seed(number)
                first = shell.execution_count
                prof = run(shell, program, Path(temporary))
                where, line = named(prof)
                cell = next(
                    (f"In[{first + i}]" for i, text in enumerate(program.cells) if LEAKS in text),
                    f"planted_{number}.py",
                )
                right = where.endswith(cell) and line == program.line if program.line else not where
                counts[f"{title}: right"] += right
                if not right:
                    planned = f"{cell}:{program.line}" if program.line else "none"
                    print(f"WRONG {name} (trial {number}): {where}:{line}, not {planned}")
    print(", ".join(f"{name} {count} of {args.trials}" for name, count in counts.items()))


if __name__ == "__main__":
    main()
