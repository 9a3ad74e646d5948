"""Cost of recording PyTorch's modules and backward passes, on the CPU.

A training step of a model like GPT, of 12 layers: 123 calls of modules and a backward pass of about
600 nodes. Ratios are to the same steps without a profile, and to a profile without frameworks. A
small width makes the ratio of the profile's cost to the step's time large.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import time
import timeit
from pathlib import Path
from typing import Any

import torch
from torch import nn

import epprof_nb
from tests.benchmarks.shared.harness import header, paired, show


class Block(nn.Module):
    """Attention and a multilayer perceptron, each added to its input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the values plus the outputs of the block."""
        query, key, value = self.qkv(self.norm1(values)).chunk(3, -1)
        attended = nn.functional.scaled_dot_product_attention(query, key, value)
        values = values + self.project(attended)
        return values + self.mlp(self.norm2(values))


class Training:
    """A model, its optimizer and a batch."""

    def __init__(self, width: int, layers: int = 12, tokens: int = 64) -> None:
        self.model = nn.Sequential(*(Block(width) for _ in range(layers)), nn.Linear(width, width))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), foreach=True)
        self.batch = torch.randn(2, tokens, width)

    def steps(self, count: int) -> float:
        """Run some steps and return the seconds of one."""
        begin = time.thread_time()
        for _ in range(count):
            self.model(self.batch).square().mean().backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        return (time.thread_time() - begin) / count


def training(width: int, count: int, rounds: int) -> None:
    """Print the time of a step."""
    made = Training(width)
    made.steps(3)

    def recorded(*frameworks: str) -> float:
        with epprof_nb.profile(frameworks=frameworks):
            made.steps(1)
            return made.steps(count)

    variants = {
        "no profile": lambda: made.steps(count),
        "frameworks = []": recorded,
        'frameworks = ["torch"]': lambda: recorded("torch"),
    }
    print(f"Training step, width {width}")
    results = paired(variants, rounds)
    show(results, ("no profile", "frameworks = []"), "ms a step", 1e3)
    pairs = zip(results['frameworks = ["torch"]'], results["frameworks = []"], strict=True)
    added = statistics.median(with_ - without for with_, without in pairs)
    print(f"  added by modules: {added * 1e6:.0f} us a step (median of the rounds)\n")


class Nothing(nn.Module):
    """A module that does nothing."""

    def forward(self) -> None:
        """Do nothing."""


def call(rounds: int, number: int = 20_000) -> None:
    """Print the time of a call of a module that does nothing."""
    module = Nothing()

    def calls() -> float:
        return timeit.timeit(module, number=number, timer=time.thread_time) / number

    def recorded(*frameworks: str) -> float:
        with epprof_nb.profile(frameworks=frameworks):
            return calls()

    variants = {
        "no profile": calls,
        "frameworks = []": recorded,
        'frameworks = ["torch"]': lambda: recorded("torch"),
    }
    print("Call of a module that does nothing")
    show(paired(variants, rounds), ("no profile",), "us a call", 1e6)


def memory(width: int, profiles: int, **options: Any) -> None:
    """Print the memory of the process after some profiles of two steps each."""
    made = Training(width)
    pages = os.sysconf("SC_PAGE_SIZE")
    print("Profiles in one process, each of two training steps")
    for number in range(1, profiles + 1):
        with epprof_nb.profile(**options) as prof:
            made.steps(2)
        if number in {1, 10, profiles}:
            gc.collect()
            resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * pages
            print(f"  after {number:3}: {resident / 2**20:.1f} MiB, {len(prof.ops)} ops")


def arguments(description: str | None) -> argparse.Namespace:
    """Parse the options of a benchmark of training steps."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--widths", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--profiles", type=int, default=100)
    return parser.parse_args()


def main() -> None:
    """Print all measurements."""
    options = arguments(__doc__)
    torch.set_num_threads(1)
    header(f"Modules of torch {torch.__version__}")
    call(options.rounds)
    for width in options.widths:
        training(width, options.steps, options.rounds)
    memory(options.widths[0], options.profiles, frameworks=["torch"])


if __name__ == "__main__":
    main()
