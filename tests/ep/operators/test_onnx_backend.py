"""ONNX's backend node tests on the host device; see `tests.ep.onnx_backend`."""

from __future__ import annotations

import pytest

from tests.ep import onnx_backend

# The table has the numbers; this is the least of them.
LEAST_PASSED = 800


@pytest.fixture(scope="module")
def results():
    return onnx_backend.run_all(onnx_backend.load_cases())


def is_listed_release():
    """Whether the table, its cases and reasons, is of the installed releases."""
    installed = (onnx_backend.onnx.__version__, onnx_backend.onnxruntime.__version__)
    return onnx_backend.listed_releases() == installed


def test_each_case_passes_or_is_listed_with_its_reason(results):
    known = onnx_backend.known_failures()
    assert known
    # Releases differ in what they load of the types that NumPy lacks.
    failed = [r for r in results if not r.passed and not r.reason.startswith("has tensors of")]
    if not is_listed_release():
        # Another release may have operators and versions that have no kernel.
        others = {onnx_backend.NO_PROVIDER, onnx_backend.NO_KERNEL, onnx_backend.NOT_CALLED}
        failed = [r for r in failed if r.reason not in others]
    assert [r for r in failed if r.name not in known] == []


def test_most_cases_run_on_kernels_in_python(results):
    assert sum(r.passed for r in results) >= LEAST_PASSED


@pytest.mark.release_independent
def test_the_table_is_up_to_date(results):
    if not is_listed_release():
        onnx, ort = onnx_backend.listed_releases()
        pytest.skip(f"the table is of onnx {onnx} and ONNX Runtime {ort}")
    text = onnx_backend.PAGE.read_text(encoding="utf-8")
    assert onnx_backend.page(results) == text, "run python -m tests.ep.onnx_backend"
