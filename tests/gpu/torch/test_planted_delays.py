"""Delays planted on a random rank and op of two GPUs with NCCL: rank, op and line are named."""

import pytest

from tests.benchmarks.planted_delays import random_trials
from tests.benchmarks.shared.delayed_ranks import run_trials

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.gpu


def test_rank_op_and_line_of_planted_delays_are_named(tmp_path):
    if torch.cuda.device_count() < 2 or not torch.distributed.is_nccl_available():
        pytest.skip("needs two GPUs and NCCL")
    outcomes = run_trials(tmp_path, random_trials(20, 2, on_gpus=True), 2, on_gpus=True)
    late = [outcome for outcome in outcomes if not outcome.is_hidden]
    assert len(late) >= 15
    # A line is unknown if too few samples found it, as on a busy host.
    wrong = [
        (outcome.trial, outcome.named)
        for outcome in late
        if not (outcome.is_right or (outcome.named and outcome.named[2] is None))
    ]
    no_line = [outcome.trial for outcome in late if outcome.named and outcome.named[2] is None]
    assert len(wrong) <= 1, wrong
    assert len(no_line) <= 4, no_line
