"""Attribution and cost of recording PyTorch on a GPU, beside torch.profiler.

Training steps of `tests.benchmarks.shared.torch_cuda_models`, so small that the GPU waits for the
host, which makes the cost of recording visible. Each part is a function; ``--parts`` chooses.
torch.profiler gives CUPTI back after each run, by ``TEARDOWN_CUPTI=1``, so that it and epprof_nb
can alternate.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import time
import timeit
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ["TEARDOWN_CUPTI"] = "1"

import epprof_nb  # before torch, whose NVTX ranges it receives

# isort: split
import torch
from torch.profiler import ProfilerActivity

from tests.benchmarks.shared.harness import header, paired, show
from tests.benchmarks.shared.torch_cuda_models import Training, gpt, resnet

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.profiles import Profile

BOTH = (ProfilerActivity.CPU, ProfilerActivity.CUDA)
WORK = ["kernel", "memcpy", "memset"]


def profiled_cell(training: Training, count: int) -> Profile:
    """Return the profile of steps in a cell, whose lines are ops."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell.instance()
    shell.user_ns.update(training=training, model=training.model, torch=torch)
    training.count = count
    if "epprof_nb" not in shell.extension_manager.loaded:
        shell.run_line_magic("load_ext", "epprof_nb")
    with capture_output():
        shell.run_cell("%%gpuprofile prof" + Training.CELL)
    prof: Profile = shell.user_ns["prof"]
    return prof


def shares(name: str, training: Training, count: int) -> None:
    """Print the owners of the kernels of a profiled cell, and the sums of its device time."""
    prof = profiled_cell(training, count)
    print(f"{name}, {count} steps")
    belongs(prof)
    rows = prof.joined()
    work = rows[rows["kind"].isin(WORK)]
    modules = prof.by_module()
    device = work["duration_ns"].sum()
    own = modules["self_device_ns"].sum()
    inner = (modules["type"] == "module") & modules.index.str.contains(".", regex=False)
    top = modules[~inner]
    parts = top[["forward_ns", "backward_ns", "other_ns"]].sum()
    print(f"  device {device} ns, rows of by_module {own} ns, {parts.to_dict()}, "
          f"sum {parts.sum()} ns")  # fmt: skip
    print(modules.head(8)[["calls", "forward_ns", "backward_ns", "other_ns", "kernels"]])
    print(f"  notes {prof.info['notes']}\n")


def belongs(prof: Profile) -> None:
    """Print the owners of the kernels, copies and memsets of a profile."""
    rows = prof.joined()
    work = rows[rows["kind"].isin(WORK)]
    owner = work["module"].astype(object)
    owner = owner.where(owner.isna(), "a module")
    of_type = work["op_id"].map(prof.ops["op_type"]).astype(object)
    owner = owner.where(owner.notna(), of_type.where(of_type.isin(["optimizer", "autograd"])))
    owner = owner.where(owner.notna() | work["line"].isna(), "a line")
    print(f"  {len(work):,} kernels, copies and memsets: {dict(Counter(owner.fillna('nothing')))}")
    print(f"  attribution {prof.info['attribution']}")


def recorded(training: Training, count: int, **options: Any) -> float:
    """Return the seconds of a step in a profile."""
    with epprof_nb.profile(**options) as prof:
        training.steps(1)
        seconds = training.steps(count)
    _check(prof)
    return seconds


def theirs(training: Training, count: int, **options: Any) -> float:
    """Return the seconds of a step with torch.profiler."""
    with torch.profiler.profile(activities=BOTH, **options):
        training.steps(1)
        return training.steps(count)


def _check(prof: Profile) -> None:
    for note in prof.info["notes"]:
        print(f"  note: {note}")


def costs(
    name: str, training: Training, count: int, rounds: int, selected: list[str] | None
) -> None:
    """Print the time of a step."""
    variants: dict[str, Callable[[], float]] = {
        "no profile": lambda: training.steps(count),
        "frameworks = []": lambda: recorded(training, count, frameworks=[]),
        "default": lambda: recorded(training, count),
        "operators": lambda: recorded(training, count, detail="operators"),
        "shapes": lambda: recorded(training, count, detail="shapes"),
        "torch.profiler": lambda: theirs(training, count),
        "torch.profiler, shapes": lambda: theirs(training, count, record_shapes=True),
    }
    if selected:
        variants = {variant: variants[variant] for variant in selected}
    for variant in variants.values():
        variant()
    print(f"Training step, {name}")
    bases = [
        base for base in ("no profile", "frameworks = []", "torch.profiler") if base in variants
    ]
    show(paired(variants, rounds), bases, "ms a step", 1e3)


def tables(name: str, training: Training, count: int, rounds: int) -> None:
    """Print the time from the last kernel to a table."""

    def ours(detail: str) -> float:
        with epprof_nb.profile(detail=detail) as prof:
            training.steps(count)
            end = time.perf_counter()
        prof.by_operator() if detail == "operators" else prof.by_module()
        return time.perf_counter() - end

    def averages() -> float:
        with torch.profiler.profile(activities=BOTH) as prof:
            training.steps(count)
            end = time.perf_counter()
        prof.key_averages()
        return time.perf_counter() - end

    variants: dict[str, Callable[[], float]] = {
        "by_module()": lambda: ours("default"),
        "by_operator()": lambda: ours("operators"),
        "key_averages()": averages,
    }
    print(f"From the last kernel of {count} steps to a table, {name}")
    show(paired(variants, rounds), ("by_module()", "by_operator()"), "ms", 1e3)


def operators(name: str, training: Training, count: int) -> None:
    """Print how the kernels and the device time of operators differ from torch.profiler's."""
    with torch.profiler.profile(activities=BOTH) as prof:
        training.steps(count)
    expected: Counter[str] = Counter()
    expected_ns: Counter[str] = Counter()
    for event in prof.events():
        for kernel in event.kernels:
            expected[event.name] += 1
            expected_ns[event.name] += round(kernel.duration * 1e3)
    with epprof_nb.profile(detail="operators") as ours:
        training.steps(count)
    _check(ours)
    ops = ours.ops
    is_operator = (ops["category"] == "operator").to_dict()
    parents, names = ops["parent_op_id"].fillna(0).astype(int).to_dict(), ops["name"].to_dict()
    found: Counter[str] = Counter()
    found_ns: Counter[str] = Counter()
    work = ours.activities
    work = work[work["kind"].isin(WORK)]
    for op, duration in zip(work["op_id"].fillna(0).astype(int), work["duration_ns"], strict=True):
        at = op
        while at and not is_operator[at]:
            at = parents[at]
        found[names.get(at, "(no operator)")] += 1
        found_ns[names.get(at, "(no operator)")] += duration
    print(f"Kernels by operator, {name}: {sum(found.values())} and {sum(expected.values())}")
    for key in sorted({*found, *expected}):
        if found[key] != expected[key]:
            print(f"  {key}: {found[key]}, torch.profiler {expected[key]}")
    same = [key for key in found if found[key] == expected[key]]
    ratio = [found_ns[key] / max(expected_ns[key], 1) for key in same] or [0.0]
    print(f"  {len(same)} operators have the same kernels; their device time:")
    print(f"  {min(ratio):.2f} - {max(ratio):.2f} x, median {statistics.median(ratio):.3f} x")
    types = ops["op_type"].to_dict()
    outside: Counter[str] = Counter()
    nodes = ops[(ops["op_type"] == "autograd_node") & ops["sequence_number"].notna()]
    for op in nodes.index:
        at = op
        while at and types[at] != "backward":
            at = parents[at]
        if not at:
            outside[names[op]] += 1
    print(f"  {len(nodes)} numbered nodes of backward passes; outside of modules {dict(outside)}\n")


def compiled(name: str, training: Training, count: int, rounds: int) -> None:
    """Print the owners of the kernels of replays, and the time of a step of compiled code."""
    training.model = torch.compile(training.model, mode="reduce-overhead")
    begin = time.perf_counter()
    with epprof_nb.profile():
        training.steps(4)
    print(f"torch.compile, reduce-overhead, {name}: {time.perf_counter() - begin:.0f} s to compile")
    prof = profiled_cell(training, count)
    belongs(prof)
    rows = prof.activities
    replayed = rows[rows["graph_id"].notna()]
    capture = prof.by_module(attribution="capture")
    known = replayed["capture_op_id"].notna().sum()
    print(f"  {len(replayed):,} in replays, {known:,} with the op that captured them")
    print(prof.by_module()[["class", "calls", "forward_ns", "backward_ns", "kernels"]].head(4))
    print(capture[["class", "forward_ns", "backward_ns", "kernels"]].head(4))
    variants: dict[str, Callable[[], float]] = {
        "no profile": lambda: training.steps(count),
        "frameworks = []": lambda: recorded(training, count, frameworks=[]),
        "default": lambda: recorded(training, count),
    }
    show(paired(variants, rounds), ("no profile", "frameworks = []"), "ms a step", 1e3)


def nvtx(rounds: int, number: int = 100_000) -> None:
    """Print the time of a range of ``torch.cuda.nvtx`` with and without a profile."""
    push, pop = torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop

    def pairs() -> float:
        return timeit.timeit(lambda: (push("range"), pop()), number=number) / number

    def profiled() -> float:
        with epprof_nb.profile():
            return pairs()

    print("Push and pop of a range of torch.cuda.nvtx")
    show(paired({"no profile": pairs, "profile": profiled}, rounds), ("no profile",), "ns", 1e9)


def memory(training: Training, profiles: int) -> None:
    """Print the memory of the process after some profiles of two steps each."""
    pages = os.sysconf("SC_PAGE_SIZE")
    print("Profiles in one process, each of two training steps")
    for number in range(1, profiles + 1):
        with epprof_nb.profile() as prof:
            training.steps(2)
        if number in {1, 10, 50, profiles}:
            gc.collect()
            resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * pages
            print(f"  after {number:3}: {resident / 2**20:.1f} MiB, {len(prof.ops)} ops, "
                  f"{len(prof.activities)} activities")  # fmt: skip


PARTS = ("shares", "costs", "tables", "operators", "nvtx", "memory", "compiled")


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--variants", nargs="+", help="profiles that the part costs compares")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--batch", type=int, default=4, help="texts in a batch")
    parser.add_argument("--length", type=int, default=256, help="tokens of a text")
    parser.add_argument("--images", type=int, default=16, help="images in a batch")
    parser.add_argument("--profiles", type=int, default=100)
    options = parser.parse_args()
    header(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}")
    language = f"GPT, {options.layers} layers of 768"
    made = {
        language: gpt(options.layers, options.batch, options.length),
        "ResNet-50": resnet(options.images),
    }
    for training in made.values():
        training.steps(3)
    for part in options.parts:
        begin = time.perf_counter()
        for name, training in made.items():
            if part == "shares":
                shares(name, training, options.steps)
            elif part == "costs":
                costs(name, training, options.steps, options.rounds, options.variants)
            elif part == "tables":
                tables(name, training, options.steps, max(options.rounds // 2, 1))
            elif part == "operators":
                operators(name, training, options.steps)
        if part == "nvtx":
            nvtx(options.rounds)
        elif part == "memory":
            memory(made[language], options.profiles)
        elif part == "compiled":
            compiled(language, made[language], options.steps, options.rounds)
        print(f"({part}: {time.perf_counter() - begin:.1f} s)\n", flush=True)


if __name__ == "__main__":
    main()
