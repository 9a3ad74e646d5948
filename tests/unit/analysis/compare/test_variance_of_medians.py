"""Variance of the difference of medians, of recordings whose drift is known."""

import numpy as np
import pytest

from epprof_nb.analysis.compare.variance_of_medians import Recording, variance_of_difference

BLOCKS = 4
"""Blocks of a recording, between which drift is measured."""


def drifting(step):
    """A recording without noise that becomes slower by `step` from block to block."""
    return Recording.of(np.repeat(np.arange(BLOCKS) * step, 10)[None, :])


@pytest.mark.parametrize("step", [0.001, 0.02])
def test_pairs_that_drift_have_the_drift_of_their_mean_once(step):
    """The differences of pairs have the variance of both sides already."""
    of_pairs = drifting(step)
    variance, _, between = variance_of_difference(
        [[of_pairs]], np.zeros(1), np.inf, recordings=(1, 1)
    )
    drift = np.var(np.arange(BLOCKS) * step, ddof=1)
    assert variance == pytest.approx(of_pairs.variance + drift / BLOCKS)
    assert between == pytest.approx(drift / BLOCKS / 2)


def test_sides_that_drift_go_on_drifting_until_the_next_recording():
    sides = [[drifting(0.02)], [drifting(0.02)]]
    variance, _, between = variance_of_difference(sides, np.zeros(1), np.inf, recordings=(1, 1))
    drift = np.var(np.arange(BLOCKS) * 0.02, ddof=1)
    assert between == pytest.approx(2 * drift)
    assert variance == pytest.approx(2 * drifting(0.02).variance + 2 * between)
