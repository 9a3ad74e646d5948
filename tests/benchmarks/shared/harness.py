"""Paired measurement: every variant in every round, ratios to the round's own base."""

from __future__ import annotations

import gc
import platform
import random
import shlex
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def processor() -> str:
    """Name of the CPU, from /proc/cpuinfo."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def header(title: str) -> None:
    """Print the title, the CPU, and the command that repeats the measurement."""
    spec = sys.modules["__main__"].__spec__
    program = ["-m", spec.name] if spec else [sys.argv[0]]
    command = shlex.join([Path(sys.executable).name, *program, *sys.argv[1:]])
    print(f"{title}\n  CPU {processor()}, Python {platform.python_version()}")
    print(f"  repeat: {command}\n")


def paired(variants: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Seconds per variant and round; the order is reversed in every other round."""
    results: dict[str, list[float]] = {name: [] for name in variants}
    order = list(variants)
    for _ in range(rounds):
        for name in order:
            gc.collect()
            results[name].append(variants[name]())
        order = order[1:] + order[:1]
    return results


def ratios(results: dict[str, list[float]], base: str) -> dict[str, tuple[float, float, float]]:
    """Least, median and greatest ratio to `base` in the same round."""
    table = {}
    for name, seconds in results.items():
        values = [s / b for s, b in zip(seconds, results[base], strict=True)]
        table[name] = (min(values), statistics.median(values), max(values))
    return table


def median_bounds(values: Sequence[float], draws: int = 2000) -> tuple[float, float]:
    """95 % bounds of the median, by the bootstrap."""
    medians = sorted(_drawn_medians(values, draws))
    return medians[int(0.025 * draws)], medians[int(0.975 * draws)]


def median_error(values: Sequence[float], draws: int = 2000) -> float:
    """Standard error of the median, by the bootstrap."""
    return statistics.stdev(_drawn_medians(values, draws))


def _drawn_medians(values: Sequence[float], draws: int) -> list[float]:
    choose = random.Random(0).choices
    return [statistics.median(choose(values, k=len(values))) for _ in range(draws)]


def show(results: dict[str, list[float]], bases: Sequence[str], unit: str, per: float) -> None:
    """Print one row per variant: median time in `unit` (seconds times `per`), and ratios."""
    width = max(len(name) for name in results)
    head = "  ".join(f"{'x ' + base:>24}" for base in bases)
    print(f"{'':{width}}  {unit:>12}  {head}")
    tables = [ratios(results, base) for base in bases]
    for name, seconds in results.items():
        cells = "  ".join(
            f"{t[name][1]:8.2f} ({t[name][0]:.2f}-{t[name][2]:.2f})".rjust(24) for t in tables
        )
        print(f"{name:{width}}  {statistics.median(seconds) * per:12.3f}  {cells}")
    print()
