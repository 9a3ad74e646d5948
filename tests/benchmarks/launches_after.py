"""Time of launches while CUPTI records, and after it has stopped.

CUPTI goes on watching calls of the driver after its records are disabled, until the process ends.
Synchronization records, and API records of the driver, make it watch all of them, so a profile has
neither. Each variant records once in a process of its own; the ratios are to the launches before.
Needs an NVIDIA GPU and PyTorch.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import torch

import epprof_nb
from tests.benchmarks.shared.harness import header
from tests.benchmarks.shared.kernel_records import kernel_records

if TYPE_CHECKING:
    from collections.abc import Callable

LAUNCHES, CHUNKS = 500, 40


VARIANTS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "nothing": nullcontext,
    "kernels": kernel_records,
    "kernels, synchronizations": lambda: kernel_records("SYNCHRONIZATION"),
    "kernels, calls of the driver": lambda: kernel_records("DRIVER"),
    "epprof_nb": epprof_nb.profile,
    "torch.profiler": torch.profiler.profile,
}


def launch_seconds(y: torch.Tensor) -> float:
    """Return the least mean time of a launch among some chunks."""
    times = []
    for _ in range(CHUNKS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(LAUNCHES):
            y.add_(1)
        times.append((time.perf_counter() - begin) / LAUNCHES)
    return min(times)


def measure(variant: str) -> None:
    """Print the times of launches before, during and after a recording, in seconds."""
    y = torch.zeros(16, device="cuda")
    for _ in range(2):
        before = launch_seconds(y)
    with VARIANTS[variant]():
        during = launch_seconds(y)
    print(before, during, launch_seconds(y))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=5, help="processes for each variant")
    parser.add_argument("--variant", choices=VARIANTS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.variant:
        measure(given.variant)
        return
    header("Launches of y.add_(1) while CUPTI records, and afterwards")
    found: dict[str, list[tuple[float, ...]]] = {variant: [] for variant in VARIANTS}
    for _ in range(given.processes):
        for variant in VARIANTS:
            command = [sys.executable, "-m", "tests.benchmarks.launches_after"]
            shown = subprocess.run(
                [*command, "--variant", variant], check=True, capture_output=True, text=True
            ).stdout
            found[variant].append(tuple(map(float, shown.split()[-3:])))
    print(f"{'records':30} {'before':>9} {'during':>9} {'after':>9}   medians, and their range")
    for variant, times in found.items():
        base = statistics.median(before for before, *_ in times)
        ratios = [[rest[i] / before for before, *rest in times] for i in (0, 1)]
        shown = "".join(f" {statistics.median(each):8.2f}x" for each in ratios)
        ranges = ", ".join(f"{min(each):.2f} to {max(each):.2f}" for each in ratios)
        print(f"{variant:30} {base * 1e6:6.2f} us{shown}   {ranges}")


if __name__ == "__main__":
    main()
