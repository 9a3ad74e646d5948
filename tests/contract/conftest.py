from __future__ import annotations

import numpy as np
import pytest

from tests.contract.devices import CudaDevice, HostDevice, why_no_cuda


@pytest.fixture(params=["host", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    if request.param == "host":
        made = HostDevice()
    else:
        reason = why_no_cuda()
        if reason:
            pytest.skip(reason)
        made = CudaDevice()
    yield made
    made.synchronize()


class Rig:
    """A device, with helpers to create arrays with known content and read them back."""

    def __init__(self, device) -> None:
        self.device = device

    def array(self, value: float, count: int = 64):
        stream = self.device.stream()
        made = self.device.empty(count)
        self.device.upload(made, np.full(count, value), stream)
        stream.synchronize()
        return made

    def content(self, array, count: int = 64) -> np.ndarray:
        self.device.synchronize()
        stream = self.device.stream()
        found = np.empty(count)
        self.device.download(found, array, stream)
        stream.synchronize()
        return found


@pytest.fixture
def rig(device):
    return Rig(device)
