"""Explanations of out-of-memory errors against what was planted in programs.

::

    python -m tests.benchmarks.memory.out_of_memory [--device cuda] [--seed 0] [--only NAME ...]
        [--workers 6] [--out FOLDER]

Each program runs out of memory at a line that the seed chooses, in a process of its own, as cells
of an IPython shell: with the extension, and without. Counted are the asking lines and the greatest
holders that the explanation has right, the errors that are those of the process without the
extension, and the clean-ups after which no more bytes are in use than there. ``--device host`` runs
the programs of the host device.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tests.benchmarks.shared.harness import header
from tests.benchmarks.shared.out_of_memory_programs import ASKS, MODEL, PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.benchmarks.shared.out_of_memory_programs import Program

Told: TypeAlias = dict[str, Any]
_CHILD_S = 60
"""Longest run of a program."""

_PAD = "# padding"
_NEW = re.compile(r"NEW\((.+?)\)@")
_LIBRARIES = {
    "cuda": ("torch.empty({} * 250_000, device='cuda')", "import torch"),
    "host": ("host.empty({} * 250_000)", "from epprof_nb import host"),
}
_LIMIT = {
    "cuda": "torch.cuda.set_per_process_memory_fraction("
    "4e9 / torch.cuda.get_device_properties(0).total_memory)",
    "host": "host.set_memory_limit(400_000_000)",
}
_CHANGING = re.compile(
    r"Process \d+|0x[0-9a-f]+|\d+ MB of .*|of which .*|\d+ of the device's \d+ bytes are free"
)
_SCALE = {"cuda": 10, "host": 1}
"""Sizes in programs are for a limit of 400 MB; the GPU has ten times as much."""


class Planted(NamedTuple):
    """A program with its lines chosen: its cells, its module, and where it asks."""

    cells: list[str]
    module: str
    file: str
    line: int


def planted(program: Program, device: str, seed: int) -> Planted:
    """Choose the line, and write the allocations of a device."""
    chance = random.Random(seed)
    new, library = _LIBRARIES[device]

    def written(text: str) -> str:
        text = text.replace("@MODEL THAT ASKS@", MODEL.replace("@ASKS@", f"  {ASKS}"))
        text = text.replace("@MODEL@", MODEL.replace("@ASKS@", ""))
        lines = []
        for line in (
            text.replace("@HOST@", library).replace("SCALE", str(_SCALE[device])).split("\n")
        ):
            if line.strip() == _PAD:
                indent = line[: len(line) - len(line.lstrip())]
                lines += [f"{indent}_p{i} = {i}" for i in range(chance.randrange(9))]
            else:
                lines.append(line)
        small = "\n".join(lines)
        scale = _SCALE[device]
        return _NEW.sub(
            lambda m: new.format(m[1] if "many = " in small else f"{m[1]} * {scale}"), small
        )

    cells = [f"{library}\n{_LIMIT[device]}", *map(written, program.cells.strip().split("\n# %%\n"))]
    module = written(program.module)
    texts = {f"In[{n + 1}]": cell for n, cell in enumerate(cells)} | {"planted.py": module}
    where = [
        (file, number)
        for file, text in texts.items()
        for number, line in enumerate(text.split("\n"), 1)
        if line.rstrip().endswith(ASKS)
    ]
    file, line = where[0]
    return Planted(cells, module, file, line)


def run_cells(cells: list[str], *, plain: bool) -> Told:
    """Run cells in a shell and return what the last error and its explanation say."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell.instance(config=config)
    found: list[dict[str, object]] = []
    if plain:
        cells = [re.sub(r"^%%gpuprofile.*", "# plain", cell) for cell in cells]
    else:
        from epprof_nb.notebook import extension, failed_cell

        def keep(output):
            made = output._explanation
            text = output._repr_mimebundle_()["text/plain"]
            print(text)
            rows = text.partition("Holds the memory")[2].split("\n")
            place = made.requested_at
            found.append(
                {
                    "file": place and place.file,
                    "line": place and place.line,
                    "holder": rows[1].strip() if len(rows) > 1 else "",
                    "fragmented": made.is_fragmented,
                    "called": made.called_at[-1].line if made.called_at else None,
                }
            )

        failed_cell.display = keep
        extension.load_ipython_extension(shell)
    error = None
    for cell in cells:
        result = shell.run_cell(cell, store_history=True)
        error = result.error_in_exec or result.error_before_exec
        if isinstance(error, ModuleNotFoundError):
            break
    told = {"error": type(error).__name__, "message": str(error), "found": found}
    del result, error
    return told | {"left": left_after_cleanup(shell)}


def left_after_cleanup(shell) -> int:
    """Release all that cells made and return the bytes that are still in use."""
    import gc

    error = getattr(sys, "last_value", None)
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
    sys.last_type = sys.last_value = sys.last_traceback = sys.last_exc = error = None
    shell.last_execution_result = None
    shell.reset()
    sys.modules.pop("planted", None)
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return int(torch.cuda.memory_allocated())
    from epprof_nb import host

    return host.memory_info().used


class Child(NamedTuple):
    """A running process, its folder, and when it ends at the latest, in seconds."""

    name: str
    plain: bool
    folder: Path
    ends_s: float


def start(name: str, program: Planted, folder: Path, *, plain: bool) -> tuple[int, Child]:
    """Run a program in a forked process, in which neither CUDA nor the extension has started."""
    folder.mkdir(parents=True)
    (folder / "planted.py").write_text(program.module, encoding="utf-8")
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process, Child(name, plain, folder, time.monotonic() + _CHILD_S)
    status = 1
    try:
        output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        told = run_cells(program.cells, plain=plain)
        (folder / "told.json").write_text(json.dumps(told), encoding="utf-8")
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def results_of(
    programs: dict[str, Planted], folder: Path, workers: int
) -> Iterator[tuple[str, Told, Told]]:
    """Run each program with the extension and without; yield what both said, as they end."""
    waiting = [(name, plain) for name in programs for plain in (False, True)]
    running: dict[int, Child] = {}
    ended: dict[tuple[str, bool], Told] = {}
    while waiting or running:
        while waiting and len(running) < workers:
            name, plain = waiting.pop(0)
            where = folder / f"{name.replace(' ', '_')}{'_plain' * plain}"
            process, child = start(name, programs[name], where, plain=plain)
            running[process] = child
        process, _ = os.waitpid(-1, os.WNOHANG)
        if not process:
            for late in [p for p, child in running.items() if time.monotonic() > child.ends_s]:
                os.kill(late, signal.SIGKILL)
            time.sleep(0.02)
            continue
        child = running.pop(process)
        output = (child.folder / "output.txt").read_text(encoding="utf-8", errors="replace")
        told = child.folder / "told.json"
        ended[child.name, child.plain] = {"output": output} | (
            json.loads(told.read_text(encoding="utf-8")) if told.exists() else {"error": None}
        )
        if (child.name, not child.plain) in ended:
            yield child.name, ended[child.name, False], ended[child.name, True]


def _comparable(told: Told) -> tuple[object, list[str]]:
    """Return an error without what differs between processes: numbers, addresses, word order."""
    return told["error"], sorted(_CHANGING.sub("", str(told.get("message"))).split())


def judged(program: Program, chosen: Planted, told: Told, plain: Told) -> dict[str, bool]:
    """Return what is right about an explanation."""
    said = told["found"][-1] if told.get("found") else {}
    is_line = (said.get("file", "").endswith(chosen.file), said.get("line")) == (True, chosen.line)
    is_holder = program.holder in said.get("holder", "")
    if program.check == "fragmented":
        is_holder &= bool(said.get("fragmented"))
    if program.check == "in the model":  # whichever of its lines, or the one that calls it
        is_line |= said.get("called") is not None
    return {
        "line": is_line,
        "holder": is_holder,
        "error": told["error"] is not None and _comparable(told) == _comparable(plain),
        "bytes": told.get("left", 1) <= plain.get("left", 0),
    }


def main() -> None:
    """Run the programs and print what was right."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cuda", "host"), default="cuda")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--workers", type=int, default=6, help="processes at a time")
    parser.add_argument("--out", help="a new folder for what the programs print")
    options = parser.parse_args()
    header("Explanations of out-of-memory errors")
    if options.device == "cuda":
        import torch  # noqa: F401 - once, for all processes
    import IPython  # noqa: F401

    programs = {
        name: planted(program, options.device, options.seed * 1000 + number)
        for number, (name, program) in enumerate(PROGRAMS.items())
        if (not options.only or name in options.only)
        and not (options.device == "host" and program.only_cuda)
    }
    counts: Counter[str] = Counter()
    wrong_ones = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.out or Path(temporary) / "programs")
        for name, told, plain in results_of(programs, folder, options.workers):
            if told["error"] == "ModuleNotFoundError":
                print(f"skipped {name}: {told['message']}", flush=True)
                continue
            chosen = programs[name]
            right = judged(PROGRAMS[name], chosen, told, plain)
            counts.update(["programs", *(key for key, ok in right.items() if ok)])
            said = told["found"][-1] if told.get("found") else {}
            mark = "ok   " if all(right.values()) else "WRONG"
            where = f"{said.get('file')}:{said.get('line')}"
            print(f"{mark} {name:32} {where:22} {said.get('holder')}", flush=True)
            if not all(right.values()):
                wrong_ones.append((name, right, told, plain))
    print("\n" + ", ".join(f"{name} {n}" for name, n in counts.items()), flush=True)
    for name, right, told, plain in wrong_ones:
        chosen = programs[name]
        print(f"\n{name}: {right}")
        print(f"  planted at {chosen.file}:{chosen.line}, {PROGRAMS[name].holder}")
        for side in (told, plain):
            print(f"  {_comparable(side)}, {side.get('left')} bytes left")
        print(told["output"][-2500:], flush=True)


if __name__ == "__main__":
    main()
