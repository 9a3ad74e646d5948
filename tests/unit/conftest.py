"""Streams of the host device, a saved profile, and no figures that tests leave open."""

from __future__ import annotations

import sys

import pytest
from saved_profiles import some

from epprof_nb import host
from epprof_nb.core.options import Options
from epprof_nb.formats.epprof import save
from epprof_nb.recorders.host import HostRecorder


@pytest.fixture(autouse=True)
def closed_figures():
    """Close the figures of a test: the 20th in a process warns, in whatever test it opens."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def quiet_device():
    """Nothing runs on the host device any more when the next test begins."""
    yield
    host.synchronize()


@pytest.fixture
def stream():
    made = host.Stream()
    yield made
    made.close()


@pytest.fixture
def recorder():
    made = HostRecorder()
    made.start(Options())
    yield made
    made.stop()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.epprof"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "run.epprof"
    save(some(), path)
    return path.read_bytes()
