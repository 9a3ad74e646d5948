"""Memory of the devices: allocations that the driver refused, and devices that are nearly full."""

import pytest

from epprof_nb.analysis.base.device_memory import nearly_full, refused_calls
from epprof_nb.analysis.base.index import ProfileIndex
from tests.helpers.tiny import call, profile


def test_only_allocations_are_refused():
    """Code 2 of other calls is not about memory of theirs."""
    calls = [("cuMemAlloc_v2", 2), ("cuMemAlloc_v2", 0), ("cuLaunchKernel", 2), ("cudaMalloc", 2)]
    index = ProfileIndex(profile(
        api_calls=[call(i, i + 1, name=name, return_value=code)
                   for i, (name, code) in enumerate(calls)]
    ))  # fmt: skip
    assert refused_calls(index).tolist() == [0, 3]


@pytest.mark.parametrize(("used", "is_full"), [([90, 10], True), ([10, 89], False), ([], False)])
def test_a_device_is_nearly_full_from_nine_tenths_on(used, is_full):
    gpus = [{"memory_used_bytes": each, "memory_total_bytes": 100} for each in used]
    index = ProfileIndex(profile(info={"gpu": {"after": {"gpus": gpus}}}))
    assert nearly_full(index) == is_full
