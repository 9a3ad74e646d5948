from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import epprof_nb
from epprof_nb.recording.onnxruntime import sessions

# run_matrix.py, which installs both, fails if no test ran.
collect_ignore_glob = [] if find_spec("onnxruntime") and find_spec("onnx") else ["test_*.py"]


@pytest.fixture
def installed():
    import onnxruntime

    epprof_nb.onnxruntime.install(nodes="every")
    yield onnxruntime
    epprof_nb.onnxruntime.uninstall()
    sessions.set_default_mode("auto")


@pytest.fixture
def x():
    return np.array([[-1, 0, 1, 2], [3, 4, 5, 6]], np.float32)


@pytest.fixture(autouse=True)
def nothing_left_open():
    from epprof_nb.recording.session.service import service

    yield
    assert service.open_subscriptions == 0
