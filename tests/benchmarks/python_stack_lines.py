"""Share of the kernels of training programs that have the right line of the user's code.

Forward: the line from which PyTorch was called, which a dispatch mode reads before each operator.
Backward: the line of the user's code in the traceback that ``torch.autograd.set_detect_anomaly``
stored when the forward pass created the node; a hook of each node notes when it runs.

Needs an NVIDIA GPU, PyTorch and transformers. ``--cpu`` only tries the program: each
operator of PyTorch launches work of the host device, whose backward stacks say nothing.
"""

from __future__ import annotations

import argparse
import bisect
import re
import sys
import tempfile
import threading
from collections import Counter
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import epprof_nb  # before torch, as in notebooks

# isort: split
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from epprof_nb import _native
from tests.benchmarks.shared.harness import header
from tests.benchmarks.shared.host_launches import HostLaunches
from tests.benchmarks.shared.training_programs import (
    Program,
    in_a_cell,
    in_a_module,
    in_a_trainer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

_FRAME = re.compile(r'\s*File "(.*)", line (\d+), in (\S+)')
_ANCHORS = 200


class Line(NamedTuple):
    """A line of the user's code, with the name of its function."""

    function: str
    number: int


class Expected:
    """Lines that launches must have: on each thread, from a time on.

    Attributes
    ----------
    files
        File names of the user's code.
    """

    def __init__(self, files: frozenset[str]) -> None:
        self.files = files
        self._times: dict[int, list[int]] = {}
        self._notes: dict[int, list[tuple[str, Line | None]]] = {}

    def note(self, name: str, line: Line | None) -> None:
        """Note what the calling thread runs from now on."""
        thread = threading.get_native_id()
        self._notes.setdefault(thread, []).append((name, line))
        self._times.setdefault(thread, []).append(_native.now_ns())

    def at(self, thread: int, time_ns: int) -> tuple[str, Line | None]:
        """Return what a thread ran at a time."""
        times = self._times.get(thread, [])
        position = bisect.bisect_right(times, time_ns)
        return self._notes[thread][position - 1] if position else ("", None)


class _ForwardLines(TorchDispatchMode):
    """Notes the line of the user's code before each operator."""

    def __init__(self, expected: Expected) -> None:
        super().__init__()
        self._expected = expected

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename not in self._expected.files:
            frame = frame.f_back
        line = Line(frame.f_code.co_name, frame.f_lineno) if frame is not None else None
        self._expected.note(str(func), line)
        return func(*args, **(kwargs or {}))


@contextmanager
def _backward_replaced(expected: Expected | None) -> Iterator[None]:
    """Note the line of each node of backward passes, or run these without dispatch modes."""
    original = torch.Tensor.backward

    def backward(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        if expected is None:
            with _disable_current_modes():
                return original(tensor, *args, **kwargs)
        for node in _nodes(tensor.grad_fn):
            line = _line_of_traceback(node.metadata.get("traceback_", ()), expected.files)
            note = partial(expected.note, node.name(), line)
            node.register_prehook(lambda _, note=note: note())
        return original(tensor, *args, **kwargs)

    torch.Tensor.backward = backward
    try:
        yield
    finally:
        torch.Tensor.backward = original


def _nodes(root: Any) -> list[Any]:
    found, remaining = {}, [root]
    while remaining:
        node = remaining.pop()
        if node is not None and node not in found:
            found[node] = None
            remaining += [following for following, _ in node.next_functions]
    return list(found)


def _line_of_traceback(entries: Any, files: frozenset[str]) -> Line | None:
    """Return the innermost line of the user's code in a traceback."""
    for entry in reversed(entries):
        match = _FRAME.match(entry)
        if match and match[1] in files:
            return Line(match[3], int(match[2]))
    return None


def own_lines(prof: epprof_nb.Profile) -> list[Line | None]:
    """Return the innermost line of the user's code of each stack."""
    found: list[Line | None] = []
    stacks = prof.stacks
    for owner, parent, function, line in zip(
        stacks["owner"], stacks["parent_id"].fillna(-1), stacks["function"], stacks["line"],
        strict=True,
    ):  # fmt: skip
        is_own = owner in ("own", "cell")
        caller = found[int(parent)] if parent >= 0 else None
        found.append(Line(function.rpartition(".")[2], int(line)) if is_own else caller)
    return found


class Run(NamedTuple):
    """A profiled run: its kernels, and what they must have."""

    kernels: pd.DataFrame
    lines: list[Line | None]
    expected: list[tuple[str, Line | None]]


def profiled(program: Program, steps: int, *, backward: bool, cpu: bool) -> Run:
    """Run some steps; `backward` selects the kernels to check."""
    expected = Expected(program.files)
    own = sorted({str(Path(file).parent) for file in program.files})
    with ExitStack() as modes:
        if backward:
            modes.enter_context(torch.autograd.set_detect_anomaly(True, check_nan=False))
        modes.enter_context(_backward_replaced(expected if backward else None))
        library = [str(Path(__file__).parent)]
        prof = modes.enter_context(epprof_nb.profile(own=own, library=library))
        before = _anchors()
        modes.enter_context(HostLaunches() if cpu else nullcontext())
        modes.enter_context(nullcontext() if backward else _ForwardLines(expected))
        program.train(steps)
        if not cpu:
            torch.cuda.synchronize()
    joined = prof.joined()
    anchors = prof.ops.loc[prof.ops["name"] == "anchor", "start_ns"].to_numpy()
    origin = max(b - a for b, a in zip(before, anchors.tolist(), strict=True))
    kernels = joined[joined["kind"].isin(["kernel", "memcpy", "memset"])]
    kernels = kernels[kernels["api_start_ns"].notna()]
    main = threading.get_native_id()
    if not cpu:
        kernels = kernels[(kernels["thread_id"] != main) == backward]
    times = kernels["api_start_ns"].astype("int64") + origin
    found = [
        expected.at(int(thread), int(time))
        for thread, time in zip(kernels["thread_id"], times, strict=True)
    ]
    return Run(kernels, own_lines(prof), found)


def _anchors() -> list[int]:
    """Return times just before ops begin, to find the origin of the times of a profile."""
    times = []
    for _ in range(_ANCHORS):
        times.append(_native.now_ns())
        with epprof_nb.op("anchor"):
            pass
    return times


def show(title: str, run: Run) -> None:
    """Print the shares, and where lines differ."""
    counts: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    for stack, source, (name, line) in zip(
        run.kernels["stack_id"].fillna(-1), run.kernels["stack_source"], run.expected, strict=True
    ):
        if line is None:
            counts["unknown"] += 1
            continue
        found = run.lines[int(stack)] if stack >= 0 else None
        how = source if isinstance(source, str) else "none"
        counts["all"] += 1
        counts[how] += 1
        if found == line:
            counts[f"right {how}"] += 1
        else:
            at = f"{found.function}:{found.number}" if found else "no line"
            differing[f"{name}: {at} ({how}), not {line.function}:{line.number}"] += 1
    right = sum(count for key, count in counts.items() if key.startswith("right"))
    total = max(counts["all"], 1)
    print(
        f"  {title}: {counts['all']:,} kernels and copies, right {right / total:.2%}; "
        f"exact {counts['exact'] / total:.2%} (right {counts['right exact'] / total:.2%}), "
        f"near {counts['near'] / total:.2%} (right {counts['right near'] / total:.2%}), "
        f"op {counts['op'] / total:.2%}, none {counts['none'] / total:.2%}; "
        f"{counts['unknown']:,} more without a line to compare with"
    )
    for text, count in differing.most_common(8):
        print(f"    {count:5} x {text}")


def main() -> None:
    """Print the shares for each program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="only try the program, without a GPU")
    options = parser.parse_args()
    device = "cpu" if options.cpu else "cuda"
    header(f"Lines of kernels, PyTorch {torch.__version__} on "
           f"{'the host device' if options.cpu else torch.cuda.get_device_name()}")  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for make in (
            lambda: in_a_cell(device),
            lambda: in_a_module(device, folder),
            lambda: in_a_trainer(device, folder),
        ):
            torch.manual_seed(0)
            program = make()
            program.train(1)
            print(program.name)
            forward = profiled(program, options.steps, backward=False, cpu=options.cpu)
            show("forward ", forward)
            show("backward", profiled(program, options.steps, backward=True, cpu=options.cpu))
            print(flush=True)


if __name__ == "__main__":
    main()
