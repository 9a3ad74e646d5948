"""Bytes at the peak with an op or a category, and what of a process's memory has no name.

::

    python -m tests.benchmarks.memory.named_memory [--only NAME ...] [--out FOLDER]

Each program runs in a process of its own: in a profile that sees CUDA start, and then in one of
steady steps. PyTorch's own peak is beside ours. Needs an NVIDIA GPU and PyTorch; ``generation`` and
``both`` need transformers, and ``both`` needs ONNX Runtime for GPUs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks.shared.harness import header

if TYPE_CHECKING:
    from collections.abc import Callable

    import epprof_nb


def _training(name: str) -> Callable[[], object]:
    from tests.benchmarks.shared import torch_cuda_models

    if name == "gpt":
        made = torch_cuda_models.gpt(layers=12, batch=8, length=512)
    else:
        made = torch_cuda_models.resnet(64)
    return lambda: made.steps(4)


def _generation() -> Callable[[], object]:
    from tests.benchmarks.shared import transformers_work

    model = transformers_work.gpt2("cuda")
    return transformers_work.generation(model, "cuda", tokens=64)


def _both() -> Callable[[], object]:
    import onnxruntime

    import epprof_nb
    from tests.gpu import exported

    if hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()
    epprof_nb.onnxruntime.install()
    train = _training("gpt")
    model, (feeds,) = exported.get("bert")
    session = onnxruntime.InferenceSession(model, providers=["CUDAExecutionProvider"])

    def run() -> None:
        train()
        session.run(None, feeds)

    return run


PROGRAMS: dict[str, Callable[[], Callable[[], object]]] = {
    "gpt": lambda: _training("gpt"),
    "resnet": lambda: _training("resnet"),
    "generation": _generation,
    "both": _both,
}


def main() -> None:
    """Run the programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--out", type=Path, help="folder for the profiles")
    parser.add_argument("--run", choices=PROGRAMS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        measure(args.run, args.out)
        return
    header("Memory with a name")
    for name in args.only:
        out = ["--out", str(args.out)] if args.out else []
        command = [
            sys.executable,
            "-m",
            "tests.benchmarks.memory.named_memory",
            "--run",
            name,
            *out,
        ]
        ended = subprocess.run(command, check=False)
        if ended.returncode:
            print(f"{name}: failed with {ended.returncode}")


def measure(name: str, out: Path | None) -> None:
    """Run a program and print its numbers."""
    import torch

    import epprof_nb

    with epprof_nb.profile(detail="memory") as first:
        run = PROGRAMS[name]()
        run()
    report(f"{name}, from the start of CUDA", first)
    run()
    torch.cuda.reset_peak_memory_stats()
    with epprof_nb.profile(detail="memory") as steady:
        run()
    report(f"{name}, steady", steady)
    if out:
        out.mkdir(parents=True, exist_ok=True)
        first.save(out / f"{name}_first.epprof")
        steady.save(out / f"{name}_steady.epprof")


def report(title: str, prof: epprof_nb.Profile) -> None:
    """Print shares of bytes with a name, and the rows without one."""
    import torch

    holders = prof.memory_at()
    pools = holders["pool"].astype(str)
    in_pools = holders[pools.str.startswith("torch") | (pools == "kernels in Python")]
    has_name = in_pools["category"].notna() | ~in_pools["name"].str.startswith("(")
    total, named = int(in_pools["bytes"].sum()), int(in_pools["bytes"][has_name].sum())
    of_torch = int(holders["bytes"][pools.str.startswith("torch")].sum())
    table = prof.memory_pools().set_index("pool")
    rest, peak = table["held_bytes"].get("(unnamed)"), torch.cuda.max_memory_allocated()
    print(f"\n{title}")
    print(f"  with an op or category at the peak: {named:,} of {total:,} ({named / total:.2%})")
    print(f"  of PyTorch at the peak: {of_torch:,}; its own peak: {peak:,}")
    whole = prof.info.get("memory", {}).get("process_bytes")
    if whole and rest is not None:
        share = int(rest) / whole
        print(f"  without a name: {int(rest):,} of the process's {whole:,} ({share:.2%})")
    if len(in_pools[~has_name]):
        print(in_pools[~has_name].head(8).to_string())
    print(table[["held_bytes", "in_use_bytes", "note"]].to_string())
    print("  notes:", *prof.info["notes"], sep="\n    ")


if __name__ == "__main__":
    main()
