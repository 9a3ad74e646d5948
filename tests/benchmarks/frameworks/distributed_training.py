"""DistributedDataParallel on two GPUs: the cost of recording, and the time to a table of all ranks.

    python -m venv /tmp/hta && /tmp/hta/bin/pip install HolisticTraceAnalysis==0.5.0 "pandas<3"
    python -m tests.benchmarks.frameworks.distributed_training --peer /tmp/hta/bin/python

The program starts a process per GPU (``--device cpu``: per rank, with gloo). All ranks profile the
same steps at the same time, in each variant by turns; a step takes as long as on the slowest rank.

``cost``: a training step in a profile, beside CUPTI's kernel records alone and torch.profiler on
all ranks. With ``--batch 64``, the GPUs are the limit.

``table``: from the end of the last kernel to a table over all ranks. Here, each rank ends its
recording and writes its part, and the first one loads the job and calls `Job.by_rank`. With
torch.profiler, each rank exports a trace, and HolisticTraceAnalysis of ``--peer`` loads them; its
imports do not count. Without ``--peer``, only the exports count.
"""

from __future__ import annotations

import argparse
import os

os.environ["TEARDOWN_CUPTI"] = "1"  # torch.profiler and epprof_nb take turns

import json
import logging
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import epprof_nb  # before torch, whose NVTX ranges it receives

# isort: split
import torch
from torch import distributed
from torch.profiler import ProfilerActivity

from epprof_nb.core.options import Options
from epprof_nb.jobs.begin_job import begin_job
from epprof_nb.jobs.child_session import ChildSession
from epprof_nb.jobs.loading import load_job
from tests.benchmarks.shared.harness import header, paired, show
from tests.benchmarks.shared.kernel_records import kernel_records
from tests.benchmarks.shared.torch_cuda_models import VOCABULARY, Gpt

if TYPE_CHECKING:
    from collections.abc import Callable

_PEER = """
import json, logging, sys, time
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
begin = time.perf_counter()
files = dict(enumerate(sys.argv[1:]))
analysis = TraceAnalysis(trace_files=files, include_last_profiler_step=True)
rows = [len(analysis.t.get_trace(rank)) for rank in files]
print(json.dumps([time.perf_counter() - begin, rows]))
"""
_PARTS = ("cost", "table")


class Ranks:
    """This rank, and its training step.

    Parameters
    ----------
    options
        Options of the command.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.rank, self.world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.on_gpus = options.device == "cuda"
        self.folder, self.count = Path(os.environ["FOLDER"]), options.steps
        self.peer = options.peer
        if self.on_gpus:
            torch.cuda.set_device(self.rank)
        self.device = torch.device(options.device, self.rank if self.on_gpus else None)
        store = f"file://{self.folder}/store"
        distributed.init_process_group(
            "nccl" if self.on_gpus else "gloo", init_method=store, rank=self.rank,
            world_size=self.world,
        )  # fmt: skip
        self.on_hosts = distributed.new_group(backend="gloo")
        torch.manual_seed(0)
        tokens = VOCABULARY if self.on_gpus else 512
        model = Gpt(options.width, options.layers, options.width // 64, tokens).to(self.device)
        self.model = torch.nn.parallel.DistributedDataParallel(model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        texts = torch.randint(tokens, (options.batch, options.length + 1))
        self.batch, self.targets = texts[:, :-1], texts[:, 1:]
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if self.on_gpus else [])]
        self.profiler = lambda: torch.profiler.profile(activities=activities)

    def step(self) -> None:
        """Train with a batch that comes from the host."""
        batch, targets = self.batch.to(self.device), self.targets.to(self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.on_gpus):
            logits = self.model(batch)
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def synchronize(self) -> None:
        """Wait until the device has done its work."""
        if self.on_gpus:
            torch.cuda.synchronize()

    def meet(self) -> None:
        """Wait for the other ranks, on the host."""
        distributed.barrier(self.on_hosts)

    def steps(self, count: int) -> float:
        """Run some steps and return the seconds of one on the slowest rank."""
        self.synchronize()
        self.meet()
        begin = time.perf_counter()
        for _ in range(count):
            self.step()
        self.synchronize()
        seconds = torch.tensor((time.perf_counter() - begin) / count, dtype=torch.float64)
        distributed.all_reduce(seconds, distributed.ReduceOp.MAX, group=self.on_hosts)
        return seconds.item()


def cost(ranks: Ranks, rounds: int) -> None:
    """Print the time of a step, unprofiled and with both profilers on all ranks."""

    def recorded(**options: object) -> float:
        with epprof_nb.profile(**options) as prof:  # type: ignore[arg-type]
            ranks.steps(1)
            seconds = ranks.steps(ranks.count)
        for note in prof.info["notes"]:
            print(f"  note on rank {ranks.rank}: {note}")
        return seconds

    def theirs() -> float:
        with ranks.profiler():
            ranks.steps(1)
            return ranks.steps(ranks.count)

    def of_cupti() -> float:
        with kernel_records(memset=True):
            ranks.steps(1)
            return ranks.steps(ranks.count)

    variants: dict[str, Callable[[], float]] = {
        "no profile": lambda: ranks.steps(ranks.count),
        **({"CUPTI's kernel records": of_cupti} if ranks.on_gpus else {}),
        "default": recorded,
        "frameworks = []": lambda: recorded(frameworks=[]),
        "no stacks, samples": lambda: recorded(frameworks=[], stacks=False, samples=False),
        "torch.profiler": theirs,
    }
    for variant in variants.values():
        variant()
    results = paired(variants, rounds)
    if ranks.rank == 0:
        print(f"Training step on {ranks.world} ranks")
        show(results, ("no profile", "torch.profiler"), "ms a step", 1e3)


def table(ranks: Ranks, rounds: int) -> None:
    """Print the time from the last kernel to a table over all ranks."""
    loads: list[float] = []

    def ours() -> float:
        folder = ranks.folder / f"job-{time.time_ns() if ranks.rank == 0 else 0}"
        named = [str(folder)]
        distributed.broadcast_object_list(named, 0, group=ranks.on_hosts)
        order, part = begin_job(Path(named[0]), Options())
        session = ChildSession(order, "run", part=part)
        session.begin()
        ranks.steps(ranks.count)
        begin = time.perf_counter()
        session.finish()
        ranks.meet()
        if ranks.rank == 0:
            job = load_job(Path(named[0]))
            frame = job.by_rank()
            assert len(frame) == ranks.world
            assert job.is_complete
        return time.perf_counter() - begin

    def theirs() -> float:
        profiler = ranks.profiler()
        profiler.start()
        ranks.steps(ranks.count)
        begin = time.perf_counter()
        profiler.stop()
        profiler.export_chrome_trace(str(ranks.folder / f"trace-{ranks.rank}.json"))
        ranks.meet()
        seconds = time.perf_counter() - begin
        if ranks.rank == 0 and ranks.peer:
            loads.append(_load_of_peer(ranks.peer, ranks.folder, ranks.world))
            seconds += loads[-1]
        ranks.meet()
        return seconds

    with_peer = " and HTA" if ranks.peer else ""
    theirs_name = f"export_chrome_trace{with_peer}"
    variants = {"job.by_rank()": ours, theirs_name: theirs}
    for variant in variants.values():
        variant()
    loads.clear()
    results = paired(variants, rounds)
    if ranks.rank == 0:
        print(f"From the last kernel of {ranks.count} steps to a table of {ranks.world} ranks")
        show(results, ("job.by_rank()",), "ms", 1e3)
        size = sum(p.stat().st_size for p in ranks.folder.glob("trace-*.json"))
        print(f"  traces of {size / 1e6:.1f} MB")
        if loads:
            print(f"  of it, HTA's load: {statistics.median(loads) * 1e3:.0f} ms")


def _load_of_peer(python: str, folder: Path, world: int) -> float:
    """Return the seconds in which HTA loads the traces of all ranks."""
    paths = [str(folder / f"trace-{rank}.json") for rank in range(world)]
    environment = {key: value for key, value in os.environ.items() if key != "RANK"}
    if python != sys.executable:
        environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [python, "-c", _PEER, *paths], check=True, capture_output=True, text=True, env=environment
    )
    seconds, rows = json.loads(done.stdout.splitlines()[-1])
    assert all(rows)
    return float(seconds)


def _start(options: argparse.Namespace) -> None:
    """Run this program once per rank."""
    world = options.ranks or (torch.cuda.device_count() if options.device == "cuda" else 2)
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.frameworks.distributed_training",
        *sys.argv[1:],
    ]
    with tempfile.TemporaryDirectory() as folder:
        running = [
            subprocess.Popen(
                command,
                env=os.environ | {
                    "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world),
                    "FOLDER": folder,
                },
            )
            for rank in range(world)
        ]  # fmt: skip
        codes = [process.wait() for process in running]
    if any(codes):
        sys.exit(f"ranks ended with the exit codes {codes}")


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=_PARTS)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--ranks", type=int, help="default: all GPUs, or 2")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--batch", type=int, default=8, help="texts in a batch of a rank")
    parser.add_argument("--length", type=int, default=512, help="tokens of a text")
    parser.add_argument("--peer", help="Python with HolisticTraceAnalysis")
    options = parser.parse_args()
    if "RANK" not in os.environ:
        name = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
        header(f"PyTorch {torch.__version__}, DistributedDataParallel on {name}")
        _start(options)
        return
    logging.disable(logging.WARNING)  # of torch.profiler on one of its options
    ranks = Ranks(options)
    ranks.steps(3)
    for part in options.parts:
        (cost if part == "cost" else table)(ranks, options.rounds)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
