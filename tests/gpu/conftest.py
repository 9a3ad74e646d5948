"""Tests on an NVIDIA GPU, skipped if there is none."""

import pytest


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
    for item in items:
        if "tests/gpu/" in str(item.path):
            item.add_marker(pytest.mark.gpu)
            if REASON:
                item.add_marker(pytest.mark.skip(reason=REASON))
