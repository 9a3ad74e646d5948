"""Ranks with a planted delay: a program whose collectives say themselves when they arrived.

Work on the host sleeps where the device is the host's: kernels in Python share its GIL.

Each step runs ops on the host and on the device, in an order that differs between trials, then an
all-reduce. In each trial, one op of one rank takes longer. On the host device, the all-reduce is a
kernel that waits on pipes for the other ranks; its own clock is the oracle.

On GPUs, it is NCCL's, and the oracle is made of CUDA events before and after it, on the clock of
each GPU: a rank waits as much as its time since the all-reduce before is shorter than that of the
last rank, for which the all-reduce itself lasts as long as the transfer. A short kernel before the
events lets the host issue all of it in time. Each step ends with a wait, as a training step that
reads its loss: else the queue of the device would hide delays of the host. What is hidden all the
same, as the oracle says, made nobody wait.
"""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

import epprof_nb
from epprof_nb.analysis.ranks.collectives import collectives_table
from epprof_nb.analysis.ranks.ranks_on_one_clock import Ranks
from epprof_nb.analysis.ranks.straggler_reasons import stragglers_table
from tests.helpers.rank_programs import start_ranks

if TYPE_CHECKING:
    from pathlib import Path

LEAST_WAIT_NS = 20_000
"""Waiting of the other ranks, below which a delay is hidden."""
OPS = 6
"""Number of ops; those with an odd number run on the device."""

_HOST_BEGIN = """
import itertools, json, os, random, sys, time
import epprof_nb
from epprof_nb import host

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
others = [other for other in range(world) if other != rank]
pipes = lambda mode, ends: {e: os.open(f"pipe-{e[0]}-{e[1]}", mode) for e in ends}
both = pipes(os.O_RDWR, [(rank, o) for o in others] + [(o, rank) for o in others])
compute, talk = host.Stream(), host.Stream()
reached, times = host.Event(), []
device_sleep = time.sleep
oracle = lambda: times

def meet():
    arrived = time.monotonic_ns()
    for other in others:
        os.write(both[rank, other], b"x")
    for other in others:
        os.read(both[other, rank], 1)
    times.append([arrived, time.monotonic_ns()])

def all_reduce():
    reached.record(compute)
    talk.wait_event(reached)
    payload = {"NCCL communicator ID": 7, "Message size [bytes]": 4096}
    with epprof_nb.op("ncclAllReduce", **payload):
        host.launch(meet, stream=talk, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL")
    reached.record(talk)
    compute.wait_event(reached)

synchronize = host.synchronize
end_step = lambda: None
"""

_GPU_BEGIN = """
import itertools, json, os, random, sys, time
import epprof_nb
import torch
from torch import distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", init_method=os.environ["STORE"], rank=rank, world_size=world)
values, times = torch.ones(1 << 20, device="cuda"), []
begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
torch.cuda._sleep(10**7)
begin.record(); torch.cuda._sleep(10**8); end.record(); end.synchronize()
cycles_per_second = 10**8 / (begin.elapsed_time(end) / 1000)

def all_reduce():
    around = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    torch.cuda._sleep(int(0.001 * cycles_per_second))
    around[0].record()
    dist.all_reduce(values)
    around[1].record()
    times.append(around)

def oracle():
    ns = lambda before, after: round(before.elapsed_time(after) * 1e6)
    return [[ns(times[i - 1][1], times[i][0]), ns(*times[i])] for i in range(1, len(times))]

synchronize = end_step = torch.cuda.synchronize
"""

_HOST_OP = """
def op_{i}(delay):
    with epprof_nb.op("op {i}"):
        time.sleep({seconds})
        if delay: time.sleep(delay)  # planted in {i}
"""
_GPU_HOST_OP = """
def op_{i}(delay):
    with epprof_nb.op("op {i}"):
        until = time.perf_counter() + {seconds} + delay
        while time.perf_counter() < until: pass  # planted in {i}
"""
_DEVICE_OP = """
def op_{i}(delay):
    with epprof_nb.op("op {i}"):
        {launch}  # planted in {i}
"""
_HOST_LAUNCH = "host.launch(device_sleep, {seconds} + delay, stream=compute, name='kernel {i}')"
_GPU_LAUNCH = "torch.cuda._sleep(int(({seconds} + delay) * cycles_per_second))"
_END = """
def train(steps, order, late, late_op, delay):
    for step in range(steps):
        for i in order:
            OPS[i](delay if rank == late and i == late_op else 0.0)
        all_reduce()
        end_step()
    synchronize()

OPS = [globals()[f"op_{i}"] for i in range(COUNT)]
train(2, range(COUNT), 0, 0, 0.0)
for number, trial in enumerate(json.loads(os.environ["TRIALS"])):
    times.clear()
    with epprof_nb.profile(own=[os.getcwd()]) as prof:
        train(trial["steps"], trial["order"], trial["rank"], trial["op"], trial["delay"])
    prof.save(f"trial{number}-rank{rank}.epprof")
    with open(f"trial{number}-rank{rank}.json", "w") as file:
        json.dump(oracle(), file)
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """A delay in seconds, planted into each execution of an op on a rank."""

    rank: int
    op: int
    delay: float
    order: tuple[int, ...]
    steps: int = 15


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a trial.

    Attributes
    ----------
    trial
        The trial.
    named
        Rank, op and line of the first reason; None if no rank was named.
    is_right
        Whether these are the planted ones.
    is_hidden
        Whether the other ranks did not wait for it at half of the collectives, by the oracle.
    waits, transfers
        Of each rank at each collective, by the profile and by the oracle, nanoseconds.
    """

    trial: Trial
    named: tuple[int, str | None, int | None] | None
    is_right: bool
    is_hidden: bool
    waits: list[tuple[int, int]]
    transfers: list[tuple[int, int]]


def run_trials(
    folder: Path, trials: list[Trial], ranks: int, *, on_gpus: bool = False
) -> list[Outcome]:
    """Run a program with the trials one after the other, and return what came out."""
    seconds = 0.0002 if on_gpus else 0.001
    launch = _GPU_LAUNCH if on_gpus else _HOST_LAUNCH
    host_op = _GPU_HOST_OP if on_gpus else _HOST_OP
    ops = "".join(
        (_DEVICE_OP if i % 2 else host_op).format(
            i=i, seconds=seconds, launch=launch.format(i=i, seconds=seconds)
        )
        for i in range(OPS)
    )
    if not on_gpus:
        for one in range(ranks):
            for other in range(ranks):
                os.mkfifo(folder / f"pipe-{one}-{other}")
    listed = [
        {"rank": t.rank, "op": t.op, "delay": t.delay, "order": t.order, "steps": t.steps}
        for t in trials
    ]
    begin = _GPU_BEGIN if on_gpus else _HOST_BEGIN
    program = f"COUNT = {OPS}\n{ops}{_END}"
    start_ranks(folder, program, ranks, begin, TRIALS=json.dumps(listed))
    return judge_trials(folder, trials, ranks, on_gpus=on_gpus)


def judge_trials(
    folder: Path, trials: list[Trial], ranks: int, *, on_gpus: bool = False
) -> list[Outcome]:
    """Return what came out of the trials that ran in a folder."""
    lines = (folder / "train.py").read_text(encoding="utf-8").splitlines()
    places = [
        next(n for n, text in enumerate(lines, 1) if text.endswith(f"# planted in {i}"))
        for i in range(OPS)
    ]
    return [
        _outcome(folder, number, t, ranks, places, on_gpus=on_gpus)
        for number, t in enumerate(trials)
    ]


def _outcome(
    folder: Path, number: int, trial: Trial, count: int, places: list[int], *, on_gpus: bool
) -> Outcome:
    ranks = Ranks(
        {rank: epprof_nb.load(folder / f"trial{number}-rank{rank}.epprof") for rank in range(count)}
    )
    rows = stragglers_table(ranks).to_frame()
    named = None
    if len(rows):
        rank, op, line = rows[["rank", "op", "line"]].astype(object).iloc[0]
        is_known = rows["line"].notna().iloc[0]
        named = (int(rank), op, int(line) if is_known else None)
    named_right = named == (trial.rank, f"op {trial.op}", places[trial.op])
    oracles = [
        json.loads((folder / f"trial{number}-rank{rank}.json").read_text()) for rank in range(count)
    ]
    table = collectives_table(ranks).to_frame()
    of_ranks = [table[table["rank"] == rank] for rank in range(count)]
    waits: list[tuple[int, int]] = []
    transfers: list[tuple[int, int]] = []
    for at, parts in enumerate(zip(*oracles, strict=True)):
        last = max(arrived for arrived, _ in parts)
        # Times of GPUs begin at the all-reduce before, so that there is none for the first one.
        row = at + trial.steps - len(oracles[0])
        transferred = min(took for _, took in parts)
        for of_rank, (arrived, ended) in zip(of_ranks, parts, strict=True):
            found = of_rank.iloc[row]
            waited, transfer = (found[c] for c in ("waited_ns", "transfer_ns"))
            waits.append((_known(waited), last - arrived))
            transfers.append((_known(transfer), transferred if on_gpus else ended - last))
    waited = [truth for i, (_, truth) in enumerate(waits) if i % count != trial.rank]
    is_hidden = statistics.median(waited) < LEAST_WAIT_NS
    return Outcome(trial, named, named_right, is_hidden, waits, transfers)


def _known(value: Any) -> int:
    """Return a time; -1 if it is missing, which no oracle says."""
    return -1 if value is pd.NA else int(value)
