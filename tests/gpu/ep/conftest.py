"""The driver of the machine, and sessions with kernels in Python."""

import pytest

from tests.ep.fake_cuda import library


@pytest.fixture(autouse=True)
def real_driver():
    if library.FakeDriver.loaded:
        pytest.skip("the stand-in for the driver is in this process; run tests/gpu on its own")


@pytest.fixture
def own_kernels(real_driver):
    """Kernels that a test defines end with it."""
    from epprof_nb.ep.kernel import REGISTRY

    before = list(REGISTRY._defined)
    yield
    REGISTRY._defined[:] = before


@pytest.fixture
def every_node(own_kernels):
    """Sessions are observed node by node."""
    import onnxruntime

    import epprof_nb

    if hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()
    epprof_nb.onnxruntime.install(nodes="every")
    yield
    epprof_nb.onnxruntime.uninstall()
