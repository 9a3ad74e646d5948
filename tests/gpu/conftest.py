"""Tests on an NVIDIA GPU, skipped if there is none."""

from importlib.util import find_spec

import pytest

_NEED_ONNX = ["onnxruntime/test_learned_nodes.py", "onnxruntime/test_recorded_runs.py"]
collect_ignore = [] if find_spec("onnx") else _NEED_ONNX


def _reason() -> str | None:
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed"
    try:
        return None if cupy.cuda.runtime.getDeviceCount() else "no NVIDIA GPU"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no usable NVIDIA GPU: {error}"


REASON = _reason()


def pytest_collection_modifyitems(items):
    """Skip tests without a GPU, and run last what leaves CUPTI's callbacks to torch.profiler."""
    items.sort(key=lambda item: item.path.name == "test_torch_profiler_beside.py")
    for item in items:
        if "tests/gpu/" in str(item.path):
            item.add_marker(pytest.mark.gpu)
            if REASON:
                item.add_marker(pytest.mark.skip(reason=REASON))


@pytest.fixture
def observed_sessions():
    """Sessions of ONNX Runtime are observed, and their nodes recorded as far as needed."""
    import onnxruntime

    import epprof_nb

    if hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()
    epprof_nb.onnxruntime.install(nodes="auto")
    yield
    epprof_nb.onnxruntime.uninstall()
