"""Streams and recordings of the host device, a saved profile, and checks after each test."""

from __future__ import annotations

import gc
import json
import sys

import pytest

import epprof_nb
from epprof_nb import _native, host
from epprof_nb.core.options import Options
from epprof_nb.files.epprof.reading_writing import save
from epprof_nb.recording.host.recorder import HostRecorder
from epprof_nb.recording.memory import host_blocks
from epprof_nb.recording.session.service import service
from tests.helpers.saved_profiles import some


@pytest.fixture(autouse=True)
def own_memory(no_arenas):
    """Tests count the memory of profiles."""


@pytest.fixture(autouse=True)
def closed_figures():
    """Close the figures of a test: the 20th in a process warns, in whatever test it opens."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def quiet_device():
    """All work of the host device ends before the next test begins."""
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


@pytest.fixture
def read(tmp_path):
    """Write a trace to a file and read it: bytes, text, or an object that becomes JSON."""

    def write_and_read(content, name="trace.json", **options):
        path = tmp_path / name
        if not isinstance(content, str | bytes):
            content = json.dumps(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return epprof_nb.read_trace(path, **options)

    return write_and_read


@pytest.fixture
def recording():
    """The native core records ops and launches, which are removed afterwards."""
    _native.set_recording(ops=True, launches=True)
    yield
    _native.set_recording(ops=False, launches=False)
    _native.drain_ops(_native.now_ns(), open_too=False)
    _native.drain_launches()
    _native.set_limits()


@pytest.fixture
def nothing_leaks():
    """No session and no op is open after the test."""
    yield
    assert service.open_subscriptions == 0
    assert _native.top() == 0


@pytest.fixture
def only_own_host_memory(monkeypatch):
    """Profiles do not see what other tests have left on the host device."""
    gc.collect()
    others = host_blocks.blocks_in_use()

    def own():
        return {n: block for n, block in host.memory.blocks_in_use().items() if n not in others}

    monkeypatch.setattr(host_blocks, "blocks_in_use", own)
