"""A simulated CUDA device for torch's out-of-memory errors."""

from __future__ import annotations

import sys

import pytest

from epprof_nb.recording.out_of_memory import device_arrays, torch_failures, variables

MB = 2**20


@pytest.fixture
def simulated(monkeypatch):
    """A function that makes a device of 100 MB, which the observer watches."""
    from tests.helpers.simulated.torch_memory import SimulatedMemory

    monkeypatch.setattr(torch_failures, "_OBSERVER", torch_failures._Observer())

    def make(**options):
        made = SimulatedMemory(100 * MB, **options)
        made.patch(monkeypatch)
        of_torch = device_arrays._of_torch
        monkeypatch.setattr(
            device_arrays,
            "_of_torch",
            lambda tensor: of_torch(tensor)._replace(device=f"cuda:{made.device}"),
        )
        torch_failures.install()
        return made

    yield make
    if torch_failures._OBSERVER.users:
        torch_failures.uninstall()


@pytest.fixture
def memory(simulated):
    return simulated()


@pytest.fixture(autouse=True)
def complete_search(no_modules_of_tests, monkeypatch):
    """Objects of a thousand earlier tests are searched, too, beside other work of the machine."""
    monkeypatch.setattr(variables, "_LIMIT_S", 120)


@pytest.fixture(autouse=True)
def no_arrays_of_other_tests():
    """Arrays of the host device in garbage would be holders, too."""
    import gc

    gc.collect()
    sys.last_value = sys.last_traceback = None
