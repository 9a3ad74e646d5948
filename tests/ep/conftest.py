from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

import epprof_nb

collect_ignore_glob = [] if find_spec("onnxruntime") and find_spec("onnx") else ["test_*.py"]
if not collect_ignore_glob:
    import onnxruntime

    if tuple(int(n) for n in onnxruntime.__version__.split(".")[:2]) < (1, 26):
        collect_ignore_glob.append("test_graph*.py")  # see test_registration.py


@pytest.fixture
def ep():
    """`epprof_nb.ep`; the kernels that a test defines are removed afterwards."""
    from epprof_nb import ep
    from epprof_nb.ep.kernel import REGISTRY

    before = {id(k): (k, k.function) for k in REGISTRY._defined}
    yield ep
    REGISTRY._defined[:] = [k for k, _ in before.values()]
    for kernel, function in before.values():
        kernel.cell[0] = function


@pytest.fixture
def installed():
    import onnxruntime

    epprof_nb.onnxruntime.install()
    yield onnxruntime
    epprof_nb.onnxruntime.uninstall()


@pytest.fixture
def x():
    return np.array([[-1, 0, 1, 2], [3, 4, 5, 6]], np.float32)
