"""Load that changes: processes that use cores and memory bandwidth in random patterns.

with ChangingLoad(seed=0) as load:
    load.change()   # another pattern, from now on
"""

from __future__ import annotations

import multiprocessing
import os
import time
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized
    from types import TracebackType

_PERIOD_S = 0.02
_LEVELS = (0.0, 0.0, 0.25, 0.5, 1.0)
"""Shares of the time in which a process is busy."""


class ChangingLoad:
    """Processes, one per core, each idle, computing or copying memory for a share of the time.

    The pattern changes by itself, every 0.1 to 3 s, until the ``with`` block ends.
    """

    def __init__(self, seed: int = 0, processes: int | None = None) -> None:
        context = multiprocessing.get_context("spawn")
        self._stop: Synchronized[int] = context.Value("i", 0)
        self._processes = [
            context.Process(
                target=_burn, args=(self._stop, seed + number, os.getpid()), daemon=True
            )
            for number in range(processes or os.cpu_count() or 1)
        ]

    def __enter__(self) -> Self:
        for process in self._processes:
            process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._stop.value = 1
        for process in self._processes:
            process.join(10)
            if process.is_alive():
                process.kill()


def _burn(stop: Synchronized[int], seed: int, parent: int) -> None:
    rng = np.random.default_rng(seed)
    source, small = np.ones(4 << 20), np.ones(1 << 12)
    copy = np.empty_like(source)
    while not stop.value and os.getppid() == parent:
        level, copies = rng.choice(_LEVELS), rng.random() < 0.5
        until = time.monotonic() + 0.1 * 30 ** rng.random()
        while time.monotonic() < until and not stop.value:
            busy_until = time.monotonic() + level * _PERIOD_S
            while time.monotonic() < busy_until:
                if copies:
                    np.copyto(copy, source)
                else:
                    np.sqrt(small, out=small)
            time.sleep((1 - level) * _PERIOD_S)
