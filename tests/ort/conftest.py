from __future__ import annotations

import numpy as np
import pytest

import epprof_nb

onnxruntime = pytest.importorskip("onnxruntime", minversion="1.25")
pytest.importorskip("onnx")


@pytest.fixture
def installed():
    epprof_nb.onnxruntime.install()
    yield onnxruntime
    epprof_nb.onnxruntime.uninstall()


@pytest.fixture
def x():
    return np.array([[-1, 0, 1, 2], [3, 4, 5, 6]], np.float32)


@pytest.fixture(autouse=True)
def nothing_left_open():
    from epprof_nb.capture import service

    yield
    assert service.consumers == 0
