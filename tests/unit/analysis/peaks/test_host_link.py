"""Bandwidth of the link between host and device."""

import pytest

from epprof_nb.analysis.peaks.host_link import link_bytes_per_s


@pytest.mark.parametrize("lanes", [(16, 8), (8, 16)])
def test_of_several_gpus_of_one_name_the_slowest_link_counts(lanes):
    gpus = [{"name": "GPU", "pcie_generation": 4, "pcie_lanes": number} for number in lanes]
    gpus.append({"name": "another", "pcie_generation": 1, "pcie_lanes": 1})
    info = {"devices": [{"device_id": 0, "name": "GPU"}], "gpu": {"before": {"gpus": gpus}}}
    assert link_bytes_per_s(info, 0, "DtoH") == pytest.approx(0.87 * 8 * 1.969e9)
    assert link_bytes_per_s(info, 0, "DtoD") is None
