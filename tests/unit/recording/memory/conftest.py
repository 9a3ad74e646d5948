"""Recordings without the arrays of other tests on the host device; a stand-in for torch."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from tests.helpers.torch_stand_in import StandIn


@pytest.fixture(autouse=True)
def no_arrays_of_other_tests(only_own_host_memory):
    pass


@pytest.fixture
def stand_in(monkeypatch):
    def install(**options):
        made = StandIn(**options)
        monkeypatch.setitem(sys.modules, "torch", made.torch)
        monkeypatch.setitem(
            sys.modules,
            "torch.optim.optimizer",
            SimpleNamespace(
                register_optimizer_step_post_hook=lambda hook: (
                    made.hooks.append(hook) or SimpleNamespace(remove=made.hooks.clear)
                )
            ),
        )
        return made

    return install
