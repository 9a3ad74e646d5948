"""Cost of recording PyTorch's operators, compared with torch.profiler, on the CPU.

The training step comes from `torch_modules.py`. Ratios are to the same steps without
a profile, and to torch.profiler with and without shapes. The second part is the time from the
end of the work to a table by operator. A small width makes the ratio of the profile's cost to the
step's time large.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

import torch

import epprof_nb
from tests.benchmarks.frameworks.torch_modules import Training, arguments, memory
from tests.benchmarks.shared.harness import header, paired, show

if TYPE_CHECKING:
    from collections.abc import Callable


def training(width: int, count: int, rounds: int) -> None:
    """Print the time of a step, and the time until a table is ready."""
    made = Training(width)
    made.steps(3)
    to_table: dict[str, list[float]] = {"shapes": [], "torch.profiler, shapes": []}
    rows: dict[str, int] = {}

    def recorded(detail: str) -> float:
        with epprof_nb.profile(detail=detail) as prof:
            made.steps(1)
            seconds = made.steps(count)
            end = time.perf_counter()
        if detail == "shapes":
            prof.by_operator(shapes=True)
            to_table["shapes"].append(time.perf_counter() - end)
            rows["shapes"] = len(prof.ops)
        return seconds

    def theirs(*, shapes: bool) -> float:
        with torch.profiler.profile(record_shapes=shapes) as prof:
            made.steps(1)
            seconds = made.steps(count)
            end = time.perf_counter()
        if shapes:
            prof.key_averages(group_by_input_shape=True)
            to_table["torch.profiler, shapes"].append(time.perf_counter() - end)
            rows["torch.profiler, shapes"] = len(prof.events())
        return seconds

    variants: dict[str, Callable[[], float]] = {
        "no profile": lambda: made.steps(count),
        "default": lambda: recorded("default"),
        "operators": lambda: recorded("operators"),
        "shapes": lambda: recorded("shapes"),
        "torch.profiler": lambda: theirs(shapes=False),
        "torch.profiler, shapes": lambda: theirs(shapes=True),
    }
    print(f"Training step, width {width}")
    results = paired(variants, rounds)
    show(results, ("no profile", "torch.profiler", "torch.profiler, shapes"), "ms a step", 1e3)
    print(f"From the end of {count + 1} steps to a table by operator and shapes")
    for name, seconds in to_table.items():
        print(f"  {name:24} {statistics.median(seconds) * 1e3:8.1f} ms, {rows[name]:,} events")


def main() -> None:
    """Print all measurements."""
    options = arguments(__doc__)
    torch.set_num_threads(1)
    header(f"Operators of torch {torch.__version__}")
    for width in options.widths:
        training(width, options.steps, options.rounds)
    memory(options.widths[0], options.profiles, detail="operators")


if __name__ == "__main__":
    main()
