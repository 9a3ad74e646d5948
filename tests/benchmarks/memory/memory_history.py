"""Cost of `--detail memory` on training steps, and its numbers next to PyTorch's own.

::

    python -m tests.benchmarks.memory.memory_history [--limit host] [--rounds 15] [--save FOLDER]

The host is the limit of the steps of a small model, which launch kernels all the time. With
``--limit gpu``, the GPU is the limit of those of a large one. Needs an NVIDIA GPU and PyTorch.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import epprof_nb
from epprof_nb.analysis.base.index import index_of
from epprof_nb.analysis.memory.memory_peak import InUse
from epprof_nb.recording.cupti import gpu_state
from tests.benchmarks.shared import torch_cuda_models
from tests.benchmarks.shared.harness import header, median_bounds, paired, show
from tests.benchmarks.shared.training_programs import CELL

STEPS = 4


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", choices=("host", "gpu"), default="host")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--save", help="folder for the profile")
    args = parser.parse_args()
    header(f"{STEPS} training steps on {torch.cuda.get_device_name()}, torch {torch.__version__}")
    with epprof_nb.profile():  # CUPTI stays attached after the first one
        torch.empty(1, device="cuda")
    unprofiled = allocations()
    with epprof_nb.profile(detail="memory") as first:
        if args.limit == "gpu":
            train = torch_cuda_models.gpt(layers=12, batch=32, length=512).steps
        else:
            program = {"torch": torch, "nn": torch.nn, "device": "cuda"}
            exec(CELL, program)
            train = program["train"]
        train(STEPS)
    report("first steps, with the model", first)

    def timed(**options) -> float:
        torch.cuda.synchronize()
        if not options:
            begin = time.perf_counter()
            train(STEPS)
            torch.cuda.synchronize()
            return time.perf_counter() - begin
        with epprof_nb.profile(**options):
            begin = time.perf_counter()
            train(STEPS)
            torch.cuda.synchronize()
            return time.perf_counter() - begin

    for _ in range(3):
        timed(), timed(detail="default"), timed(detail="memory")
    results = paired(
        {
            "not profiled": timed,
            "default": lambda: timed(detail="default"),
            "memory": lambda: timed(detail="memory"),
        },
        args.rounds,
    )
    show(results, ("not profiled", "default"), "ms per step", 1e3 / STEPS)
    ratio = np.array(results["memory"]) / np.array(results["default"])
    print("memory / default, 95 % bounds of the median:", median_bounds(ratio.tolist()))
    later = allocations()
    print(
        f"allocations, not profiled: {unprofiled * 1e9:.0f} ns before the first history, "
        f"{later * 1e9:.0f} ns after all ({later / unprofiled:.3f})"
    )
    with epprof_nb.profile() as plain:
        train(STEPS)
    print("default, cost", plain.info["profiling_cost"])
    torch.cuda.reset_peak_memory_stats()
    with epprof_nb.profile(detail="memory") as steady:
        train(STEPS)
    report("steady steps", steady)
    if args.save:
        first.save(Path(args.save) / "first.epprof")
        steady.save(Path(args.save) / "steady.epprof")


def allocations() -> float:
    """Seconds of an allocation that the program keeps for a moment: the least of several."""
    torch.empty(1000, device="cuda")
    seconds = []
    for _ in range(15):
        begin = time.perf_counter()
        for _ in range(20_000):
            torch.empty(1000, device="cuda")
        seconds.append((time.perf_counter() - begin) / 20_000)
    return min(seconds)


def report(title: str, prof: epprof_nb.Profile) -> None:
    """Print the numbers of a profile next to those of PyTorch."""
    peak = torch.cuda.max_memory_allocated()
    begin = time.perf_counter()
    holders = prof.memory_at()
    asked = time.perf_counter() - begin
    in_use = index_of(prof).cached(InUse)
    blocks = prof.tables["memory_blocks"]
    made = blocks.has_value("allocated_ns")
    with_op = blocks.has_value("op_id") & made
    is_torch = np.array([str(name).startswith("torch") for name in blocks.names("pool").to_list()])
    known = holders["category"].notna() | ~holders["name"].str.startswith("(")
    print(f"\n{title}: {int(made.sum()):,} allocations, {int(with_op.sum()):,} with an op")
    print(
        f"  peak {in_use.peak_bytes:,}, PyTorch's {peak:,}, of torch {int(is_torch.sum()):,} rows"
    )
    print(f"  bytes at the peak with an op or category: {holders[known]['bytes'].sum():,}")
    print(f"  memory_at() {asked * 1e3:.2f} ms, join {prof.info['profiling_cost']}")
    begin = time.perf_counter()
    torch.cuda.memory._snapshot()
    print(f"  PyTorch's snapshot without a history {(time.perf_counter() - begin) * 1e3:.2f} ms")
    print(holders.head(12).to_string())
    print(prof.memory_pools().to_string())
    print("  notes", prof.info["notes"], prof.info.get("memory"))
    gpus = gpu_state.snapshot().get("gpus", [])
    print("  NVML", [gpu.get("memory_used_bytes") for gpu in gpus], torch.cuda.mem_get_info())


if __name__ == "__main__":
    main()
