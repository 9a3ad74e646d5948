"""Ten delays planted on a random rank and op of the host device: each is found by op and line."""

import random
from dataclasses import replace

from tests.benchmarks.shared.delayed_ranks import OPS, Trial, run_trials

RANKS = 3
DELAYS = (0.02, 0.1, 0.5)
"""Delays in seconds; a longer one is for systems that suspend the ranks for longer than that."""


def test_the_rank_op_and_line_of_planted_delays_are_named(tmp_path):
    choose = random.Random(0)
    trials = [
        Trial(choose.randrange(RANKS), op, DELAYS[0], tuple(choose.sample(range(OPS), OPS)))
        for op in [*range(OPS), *choose.sample(range(OPS), 4)]
    ]
    for delay in DELAYS:
        folder = tmp_path / str(delay)
        folder.mkdir()
        outcomes = run_trials(folder, [replace(trial, delay=delay) for trial in trials], RANKS)
        for outcome in outcomes:
            assert len(outcome.waits) == len(outcome.transfers) == RANKS * outcome.trial.steps
        wrong = [(outcome.trial, outcome.named) for outcome in outcomes if not outcome.is_right]
        trials = [trial for trial, _ in wrong]
        if not trials:
            return
    raise AssertionError(f"not named: {wrong}")
