"""Recordings without the arrays that other tests have left on the host device."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_arrays_of_other_tests(only_own_host_memory):
    pass
