from __future__ import annotations

import functools
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import epprof_nb

HERE = Path(__file__).parent
collect_ignore_glob = (
    [] if find_spec("onnxruntime") and find_spec("onnx") else ["test_*.py", "*/test_*.py"]
)
if not collect_ignore_glob:
    import onnxruntime

    if tuple(int(n) for n in onnxruntime.__version__.split(".")[:2]) < (1, 26):
        collect_ignore_glob.append("graphs/test_graph*.py")  # see test_registration.py


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(config, items):
    """Mark the tests that run on a GPU, and those that need one release of ONNX Runtime only."""
    on_gpu = config.getoption("--ep-device", "host") != "host"
    here = f"{HERE}/"
    for item in items:
        if not str(item.path).startswith(here):
            continue
        if on_gpu and "ep_device" in item.fixturenames:
            item.add_marker(pytest.mark.gpu)
        params = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if (
            {"driver", "fake_cuda"} & set(item.fixturenames)
            or item.path.name.startswith("test_cuda")
            or any(isinstance(value, str) and value == "cuda:0" for value in params)
        ):
            item.add_marker(pytest.mark.release_independent)


@pytest.fixture
def ep_device(request):
    """The device of the tests that compare kernels with ONNX Runtime's CPU provider."""
    return request.config.getoption("--ep-device", "host")


@pytest.fixture
def provider(ep, ep_device):
    """`epprof_nb.ep.provider` for that device."""
    return functools.partial(ep.provider, ep_device)


@pytest.fixture
def ep():
    """`epprof_nb.ep`; the kernels that a test defines are removed afterwards."""
    from epprof_nb import ep
    from epprof_nb.ep.kernel import REGISTRY

    before = {id(k): (k, k.function) for k in REGISTRY._defined}
    yield ep
    REGISTRY._defined[:] = [k for k, _ in before.values()]
    REGISTRY._replaced.clear()
    for kernel, function in before.values():
        kernel.cell[0] = function


@pytest.fixture(scope="session")
def driver():
    """The stand-in for NVIDIA's driver, in place of it for the rest of the process."""
    from epprof_nb.ep import cuda
    from tests.ep.fake_cuda import library

    if library.compiler() is None:
        pytest.skip("the stand-in for the driver needs a C++ compiler")
    fake = library.FakeDriver()
    if cuda.open_driver(fake.path) and not fake.calls("cuInit"):
        pytest.skip("NVIDIA's driver is open in this process; run tests/ep on its own")
    library.FakeDriver.loaded = True
    return fake


@pytest.fixture
def fake_cuda(driver, monkeypatch):
    """The stand-in for the driver, with one for CuPy; fails the test if either was misused."""
    from epprof_nb.ep import cuda
    from tests.ep.fake_cuda.arrays import Module

    module = Module(driver)
    monkeypatch.setattr(cuda, "array_module", lambda: module)
    cuda.current_stream.cache_clear()
    driver.module = module
    driver.misuse()
    yield driver
    driver.set_delay(0)
    assert driver.misuse() == []


@pytest.fixture
def scale(fake_cuda):
    """A kernel in CUDA C++ that multiplies by a number."""
    from tests.ep.fake_cuda.kernels import SCALE

    return fake_cuda.module.RawKernel(SCALE, "scale")


@pytest.fixture(params=["host", "cuda:0"])
def device(request):
    """A device of the provider: the host device, and a CUDA device of the stand-in."""
    if request.param != "host":
        request.getfixturevalue("fake_cuda")
    return request.param


@pytest.fixture
def installed():
    import onnxruntime

    epprof_nb.onnxruntime.install()
    yield onnxruntime
    epprof_nb.onnxruntime.uninstall()


@pytest.fixture
def x():
    return np.array([[-1, 0, 1, 2], [3, 4, 5, 6]], np.float32)


@pytest.fixture
def running(ep, x):
    """A session with a user's Sigmoid; returns a function that redefines and runs it."""
    from tests.ep.sessions import model_of, session, sigmoid

    ep.kernel("Sigmoid")(sigmoid)
    made = session(model_of("Sigmoid", {"x": x}), ep.provider("host"))

    def run(function):
        ep.kernel("Sigmoid")(function)
        return made.run(None, {"x": x})[0]

    return run


@pytest.fixture
def new_session(ep, device):
    """Make a session that captures graphs on the device of the test."""

    from tests.ort import models

    def make(serialized=None, **options):
        options = {"enable_cuda_graph": True, **options}
        return ep.session(serialized or models.chain(), device=device, **options)

    return make


@pytest.fixture
def computes(ep, device):
    """The calls of the Sigmoid of the chain. On a CUDA device, a replay makes none."""
    from tests.ep.sessions import Computes

    seen = Computes(device)

    @ep.kernel("Sigmoid")
    def sigmoid(ctx, x):
        seen.append(x.ctypes.data if device == "host" else x.data.ptr)
        ctx.xp.divide(1, 1 + ctx.xp.exp(-x), out=ctx.out(x.shape, x.dtype))

    return seen
