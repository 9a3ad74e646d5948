"""The kernels of the package in CuPy: tests of the host device, and ONNX's backend tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", minversion="1.25", reason="onnxruntime is not installed")

from tests.ep import onnx_backend

ROOT = Path(__file__).parents[2]
FILES = [
    "bad_input", "contrib_operators", "invalid_nodes", "models", "nhwc", "operators", "strides",
    "trees", "verify",
]  # fmt: skip
PROCESSES = 4


@pytest.mark.parametrize("name", FILES)
def test_what_holds_on_the_host_device_holds_on_cuda(name):
    # In a process of its own: other tests have the stand-in for the driver.
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE", "--tb=short",
        "--ep-device", "cuda:0", "-m", "gpu", f"tests/ep/test_{name}.py",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


def test_each_backend_case_passes_or_is_listed_with_its_reason():
    results = onnx_backend.run_in_processes(PROCESSES, "", "cuda:0")
    known = onnx_backend.known_failures(onnx_backend.CUDA_PAGE)
    failed = [r for r in results if not r.passed and not r.reason.startswith("has tensors of")]
    assert [r for r in failed if r.name not in known] == []
    assert sum(r.passed for r in results) >= 800
