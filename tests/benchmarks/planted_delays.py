"""Delays planted on a random rank and op, and what `Job.stragglers` names.

::

    python -m tests.benchmarks.planted_delays [--trials 10] [--ranks 3] [--gpus] [--keep FOLDER]
    python -m tests.benchmarks.planted_delays [--trials 10] [--ranks 3] [--gpus] --again FOLDER

On the host device, each delay is 20 ms. With ``--gpus``, each rank has a GPU, and delays are 0.2 to
5 ms. A trial is right if rank, op and line of the first reason are the planted ones. Waiting and
transfer are right within 5 % or 20 us of the clocks of the kernels; on GPUs, of CUDA events. A
delay for which no rank waited, because the queue of the device hid it, does not count.
``--keep`` keeps the profiles, and ``--again`` judges kept ones.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
from pathlib import Path

from tests.benchmarks.shared.delayed_ranks import (
    LEAST_WAIT_NS,
    OPS,
    Trial,
    judge_trials,
    run_trials,
)
from tests.benchmarks.shared.harness import header

DELAY, GPU_DELAYS = 0.02, (0.0002, 0.005)
TOLERANCE = 0.05


def random_trials(count: int, ranks: int, *, on_gpus: bool, seed: int = 0) -> list[Trial]:
    """Return trials with a random rank, op, delay and order of the ops."""
    choose = random.Random(seed)
    return [
        Trial(
            choose.randrange(ranks),
            choose.randrange(OPS),
            choose.uniform(*GPU_DELAYS) if on_gpus else DELAY,
            tuple(choose.sample(range(OPS), OPS)),
        )
        for _ in range(count)
    ]


def right(pairs: list[tuple[int, int]]) -> int:
    """Return how many times are as the oracle says."""
    return sum(abs(a - b) <= max(TOLERANCE * b, LEAST_WAIT_NS) for a, b in pairs)


def main() -> None:
    """Run the trials and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--gpus", action="store_true")
    parser.add_argument("--keep", type=Path, help="a new folder for the profiles")
    parser.add_argument("--again", type=Path, help="a folder of kept profiles")
    given = parser.parse_args()
    ranks = given.ranks or (2 if given.gpus else 3)
    header("Planted delays")
    trials = random_trials(given.trials, ranks, on_gpus=given.gpus)
    if given.again:
        outcomes = judge_trials(given.again, trials, ranks, on_gpus=given.gpus)
    elif given.keep:
        given.keep.mkdir(parents=True)
        outcomes = run_trials(given.keep, trials, ranks, on_gpus=given.gpus)
    else:
        with tempfile.TemporaryDirectory() as folder:
            outcomes = run_trials(Path(folder), trials, ranks, on_gpus=given.gpus)
    for outcome in outcomes:
        trial = outcome.trial
        planted = f"rank {trial.rank}, op {trial.op}, {trial.delay * 1000:.2f} ms"
        found = "right" if outcome.is_right else f"named {outcome.named}"
        print(f"{planted:<28} {found}{', hidden' * outcome.is_hidden}")
    late = [outcome for outcome in outcomes if not outcome.is_hidden]
    print(
        f"named: {sum(o.is_right for o in late)} of {len(late)}, {len(outcomes) - len(late)} hidden"
    )
    for name in ("waits", "transfers"):
        pairs = [pair for outcome in outcomes for pair in getattr(outcome, name)]
        off = statistics.median(abs(a - b) for a, b in pairs) / 1e3
        print(f"{name} right: {right(pairs):,} of {len(pairs):,}; off by {off:.1f} us (median)")


if __name__ == "__main__":
    main()
