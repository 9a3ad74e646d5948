"""Overhead of ``--live`` for a loop of launches: ratio to the same profile without it.

It runs on the GPU if PyTorch finds one, else on the host device. The launches of the host device
are Python code, so the loop also pays for everything that the progress does while it holds the GIL.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np

import epprof_nb
from epprof_nb import host
from epprof_nb.notebook import live_progress
from epprof_nb.recording.session import session
from tests.benchmarks.shared.harness import header, paired, show

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from epprof_nb.notebook.progress_display import Child
    from epprof_nb.recording.session.running_totals import Progress


class Screen:
    """A screen that formats like a notebook's and counts its updates."""

    def __init__(self) -> None:
        self.shown = 0
        self._notebook = live_progress.NotebookScreen(self)

    def publish(self, *_: object, **__: object) -> None:
        """Replace IPython's publisher."""
        self.shown += 1

    def show(self, progress: Progress, children: Sequence[Child] = ()) -> None:
        """Format the progress."""
        self._notebook.show(progress, children)

    def clear(self) -> None:
        """Clear the display."""
        self._notebook.clear()


def loop() -> tuple[str, Callable[[], object], Callable[[], object]]:
    """Return the device name, a function that launches a kernel, and one that synchronizes."""
    try:
        import torch

        if torch.cuda.is_available():
            x = torch.zeros(16, device="cuda")
            return torch.cuda.get_device_name(), lambda: x.add_(1), torch.cuda.synchronize
    except ImportError:
        pass
    y = host.empty((16,), np.float32)
    return "the host device", lambda: host.launch(np.sin, y, y, name="sin"), host.synchronize


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of a round, about")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    where, launch, wait = loop()

    def work(count: int) -> float:
        begin = time.perf_counter()
        for _ in range(count // 100):
            with epprof_nb.op("step"):
                for _ in range(100):
                    launch()
                wait()
        return time.perf_counter() - begin

    work(1_000)
    begun = session.start()
    rate = 20_000 / work(20_000)
    begun.abort()
    count = int(rate * args.seconds)
    header(f"{count:,} launches on {where}, profiled, one op to a hundred")
    shown: list[int] = []

    def profiled(*, with_progress: bool) -> float:
        begun = session.start()
        screen = Screen()
        progress = live_progress.LiveProgress(begun, screen) if with_progress else None
        seconds = work(count)
        if progress is not None:
            progress.stop()
            assert progress.failure is None, progress.failure
            shown.append(screen.shown)
        kernels = begun.stop().tables["activities"].names("kind").equals("kernel").sum()
        assert kernels == count // 100 * 100, (kernels, count)
        return seconds

    variants = {
        "without --live": lambda: profiled(with_progress=False),
        "with --live": lambda: profiled(with_progress=True),
        "without, again": lambda: profiled(with_progress=False),
    }
    show(paired(variants, args.rounds), ("without --live",), "us a launch", 1e6 / count)
    print(f"updates per round: {min(shown)} to {max(shown)}\n")


if __name__ == "__main__":
    main()
