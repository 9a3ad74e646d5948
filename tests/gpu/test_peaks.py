"""Peaks of a GPU: arithmetic, memory and the link to the host, with CuPy and with PyTorch."""

import sys

import pytest

from epprof_nb.analysis.peaks.host_link import link_bytes_per_s
from epprof_nb.analysis.peaks.measure_peaks import measure_devices

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_the_peaks_of_a_gpu_are_measured(library, monkeypatch):
    if library == "torch":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    else:
        monkeypatch.delitem(sys.modules, "torch", raising=False)
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    info = {"devices": [{"device_id": 0, "name": name, "kind": "gpu"}]}
    (peaks,) = measure_devices(info, "host").values()
    print(library, peaks)
    assert {"float", "float16"} <= peaks.flops_per_s.keys()
    assert all(flops > 0 for flops in peaks.flops_per_s.values())
    # A copy within the device is faster than one over its link.
    assert peaks.bytes_per_s > max(peaks.link_bytes_per_s.values())
    info["peaks"] = {"0": peaks.to_info()}
    for direction in ("HtoD", "DtoH"):
        assert link_bytes_per_s(info, 0, direction) == peaks.link_bytes_per_s[direction]


def test_devices_of_other_machines_are_not_measured():
    info = {"devices": [{"device_id": 0, "name": "another GPU", "kind": "gpu"}]}
    assert measure_devices(info, "host") == {}
