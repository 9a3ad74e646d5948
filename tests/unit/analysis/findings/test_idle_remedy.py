"""Remedies of idle time: the change, and a gain that this change can have."""

import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings.ranking import findings
from epprof_nb.testing import synthetic_profile
from tests.helpers.planted import MS, info, of_kind
from tests.helpers.tiny import kernel, line, profile

ROUNDS = 12


def loading(busy, load):
    """Each round runs a kernel for `busy`, then the host loads for `load`."""
    ops, work, t = [], [], 0
    for i in range(ROUNDS):
        ops += [line(2 * i + 1, 1, t, t + busy), line(2 * i + 2, 2, t + busy, t + busy + load)]
        work.append(kernel(t, t + busy, 2 * i + 1))
        t += busy + load
    return profile(ops, work, info=info(t), sources={"In[1]": "y = f(x)\nx = load()\n"})


@pytest.mark.parametrize("busy", [MS // 10, MS, 9 * MS])
def test_more_than_devices_do_cannot_overlap(busy):
    load = 20 * MS
    (found,) = (f for f in of_kind(loading(busy, load), "idle") if "gaps" in f.text)
    assert "Do this work while" not in found.remedy
    assert found.remedy.startswith("Make this work faster, or keep its result")
    # Less work saves up to all of it, and the text has no other number.
    assert not any(letter.isdigit() for letter in found.remedy)
    assert (found.low_ns, found.gain_ns) == (0, ROUNDS * load)


@pytest.mark.parametrize("busy", [12 * MS, 30 * MS])
def test_the_gain_of_overlap_is_what_devices_do_meanwhile(busy):
    load = 20 * MS
    (found,) = (f for f in of_kind(loading(busy, load), "idle") if "gaps" in f.text)
    assert found.remedy.startswith("Do this work while the GPU is busy")
    # The work after the last of the device has no later work to overlap with, but earlier one.
    assert found.gain_ns == min(ROUNDS * busy, ROUNDS * load)
    assert found.high_ns == min(1.25 * found.gain_ns, ROUNDS * load)


def test_work_before_the_first_of_a_device_has_nothing_to_overlap_with():
    prof = profile([line(1, 1, 0, 90 * MS)], [kernel(80 * MS, 90 * MS, 1)],
                   info=info(90 * MS, cell="In[1]"))  # fmt: skip
    (found,) = of_kind(prof, "idle")
    assert found.remedy == "Do this work before the cell, or make it faster."
    assert found.gain_ns == 80 * MS


def test_one_cause_is_told_once():
    """Checkpoints make iterations slow, while the host is in a line and the device is idle."""
    found = findings(ProfileIndex(synthetic_profile(activities=100_000)), limit=None)
    kinds = [f.kind for f in found]
    assert "idle" in kinds
    assert "outliers" not in kinds
