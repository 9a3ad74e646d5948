"""Findings on the same idle time: which one explains the other."""

import numpy as np
import pytest

from epprof_nb.analysis.findings.finding import Finding
from epprof_nb.analysis.findings.shared_idle_time import with_causes


def finding(kind, gain, start, end):
    return Finding(
        f"{kind}.", gain, start, end, kind=kind, remedy=f"Change {kind}.",
        spans=lambda: (np.array([start]), np.array([end])),
    )  # fmt: skip


@pytest.mark.parametrize(("common", "is_one"), [(20, True), (19, False)])
def test_a_cause_explains_the_time_that_both_have(common, is_one):
    """Half of the gain of the other is enough, however much else the cause saves."""
    cause = finding("wait", 1_000, 100 - common, 100)
    idle = finding("idle", 40, 100 - common, 200)
    found = with_causes([cause, idle])
    assert [f.kind for f in found] == (["wait"] if is_one else ["wait", "idle"])


def test_a_cause_that_saves_a_part_of_its_time_explains_this_part():
    for gain, kinds in ((50, ["wait"]), (49, ["wait", "idle"])):
        found = with_causes([finding("wait", gain, 0, 100), finding("idle", 100, 0, 100)])
        assert [f.kind for f in found] == kinds
