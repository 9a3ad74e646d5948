"""Output of a profiled cell: time until the cell is done, and its size in the notebook.

Cells run in a real kernel, plain and profiled in turn. The time is measured from the request to the
kernel's next idle state; the processor time is the time of the kernel's process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from jupyter_client.manager import start_new_kernel

from tests.benchmarks.shared.harness import header

if TYPE_CHECKING:
    from collections.abc import Iterator

SETUP = """
import numpy as np, time
from epprof_nb import host, op
small = host.to_device(np.ones(16, np.float32))
def work(n):
    for i in range(n):
        with op("step", index=i):
            host.launch(lambda a: None, small, name=f"kernel_{i % 20}")
            host.to_host(small)
"""
PROFILED_PLAIN = "%%gpuprofile\nx = 1"
# An op, a kernel, a copy, a synchronization and three API calls in each step.
CELLS = {
    "x = 1": "x = 1",
    "small profile": "work(60)",
    "21,000 events": "work(3_000)",
}


@dataclass
class Kernel:
    """A kernel in a process of its own."""

    manager: Any = field(init=False)
    client: Any = field(init=False)

    def __enter__(self) -> Self:
        self.manager, self.client = start_new_kernel(kernel_name="python3")
        return self

    def __exit__(self, *_: object) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def run(self, code: str) -> tuple[float, list[dict[str, Any]]]:
        """Run a cell; return the seconds that it took and its outputs."""
        began = time.perf_counter()
        outputs: list[dict[str, Any]] = []
        reply = self.client.execute_interactive(code, output_hook=outputs.append, timeout=120)
        took = time.perf_counter() - began
        if reply["content"]["status"] != "ok":
            raise RuntimeError("\n".join(reply["content"]["traceback"]))
        return took, outputs

    def processor(self) -> float:
        """Return the processor time of the kernel so far, in seconds."""
        reply = self.client.execute(
            "", silent=True, user_expressions={"t": "__import__('time').process_time()"}, reply=True
        )
        return float(reply["content"]["user_expressions"]["t"]["data"]["text/plain"])

    def measure(self, code: str) -> tuple[float, float, list[dict[str, Any]]]:
        """Run a cell; return its seconds, its processor time and its outputs."""
        before = self.processor()
        took, outputs = self.run(code)
        return took, self.processor() - before, outputs


def saved_bytes(outputs: list[dict[str, Any]]) -> int:
    """Return the size of the outputs as a notebook stores them."""
    kinds = ("display_data", "execute_result", "stream", "error")
    return sum(
        len(json.dumps(o["content"], ensure_ascii=False).encode())
        for o in outputs
        if o["header"]["msg_type"] in kinds
    )


def first_cells(rounds: int, *, imports: str) -> Iterator[dict[str, tuple[float, float, float]]]:
    """Yield seconds of a plain cell and of another, and its additional processor time.

    The other cells are ``%load_ext``, and the first one that is profiled after it.
    """
    for _ in range(rounds):
        with Kernel() as kernel:
            kernel.run(f"import {imports}\nx = 1")
            results = {}
            for name, code in (("load_ext", "%load_ext epprof_nb"), ("first", PROFILED_PLAIN)):
                plain, used, _ = kernel.measure("x = 1")
                took, cpu, _ = kernel.measure(code)
                results[name] = (plain, took, cpu - used)
            yield results


def line(name: str, plain: list[float], profiled: list[float], cpu: list[float], size: str) -> None:
    """Print one row: medians, and the difference of each pair."""
    more = [b - a for a, b in zip(plain, profiled, strict=True)]
    print(
        f"{name:36} {statistics.median(plain) * 1e3:8.1f} {statistics.median(profiled) * 1e3:9.1f} "
        f"{statistics.median(more) * 1e3:8.1f} ({min(more) * 1e3:.1f}-{max(more) * 1e3:.1f})".ljust(
            82
        )
        + f"{statistics.median(cpu) * 1e3:12.1f} {size:>10}"
    )


def main() -> None:
    """Print one row per cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--first", type=int, default=3, help="kernels started for the first cell")
    given = parser.parse_args()
    header("Output of a profiled cell, against the same cell without the magic (ms, medians)")
    print(
        f"{'':36} {'plain':>8} {'profiled':>9} {'more':>8} (range)".ljust(82)
        + f"{'more CPU':>12} {'size':>10}"
    )
    for imports in ("numpy", "pandas"):
        firsts = list(first_cells(given.first, imports=imports))
        for name, code in (("load_ext", "%load_ext"), ("first", "first x = 1")):
            columns = zip(*(results[name] for results in firsts), strict=True)
            line(f"{code}, after import of {imports}", *map(list, columns), size="")
    with Kernel() as kernel:
        kernel.run("%load_ext epprof_nb")
        kernel.run(SETUP)
        kernel.run("%%gpuprofile\nwork(60)")
        for name, code in CELLS.items():
            plain, profiled, cpu = [], [], []
            for _ in range(given.rounds):
                took, used, _ = kernel.measure(code)
                plain.append(took)
                took, used_profiled, outputs = kernel.measure(f"%%gpuprofile\n{code}")
                profiled.append(took)
                cpu.append(used_profiled - used)
            line(name, plain, profiled, cpu, f"{saved_bytes(outputs) / 1e3:,.0f} kB")


if __name__ == "__main__":
    sys.exit(main())
