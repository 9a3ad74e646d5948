"""The kernels of the package in CuPy: tests of the host device, and ONNX's backend tests."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.paths import ROOT

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", minversion="1.25", reason="onnxruntime is not installed")

from tests.ep import onnx_backend

FILES = [
    "test_bad_input", "operators/test_contrib_operators", "operators/test_invalid_nodes",
    "test_models", "operators/test_nhwc", "operators/test_nonfinite", "operators/test_operators",
    "operators/test_strides", "operators/test_trees", "test_verify",
]  # fmt: skip
PROCESSES = min(8, os.cpu_count() or 1)


def run(name):
    # In a separate process: other tests have the stand-in for the driver.
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE", "--tb=short",
        "--ep-device", "cuda:0", "-m", "gpu", f"tests/ep/{name}.py",
    ]  # fmt: skip
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def runs(request):
    """The chosen files, several at a time: most of their time goes into compilations by CuPy."""
    items = (item for item in request.session.items if item.path == request.path)
    names = [item.callspec.params["name"] for item in items if hasattr(item, "callspec")]
    with ThreadPoolExecutor(PROCESSES) as pool:
        yield {name: pool.submit(run, name) for name in names}


@pytest.mark.parametrize("name", FILES)
def test_what_holds_on_the_host_device_holds_on_cuda(runs, name):
    done = runs[name].result()
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


def test_the_listed_interface_is_that_of_cupy():
    path = ROOT / "tests" / "tools" / "make_cupy_api.py"
    spec = importlib.util.spec_from_file_location("make_cupy_api", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    listed, installed = json.loads(tool.OUTPUT.read_text(encoding="utf-8")), tool.interface()
    if listed.pop("version") != installed["version"]:
        pytest.skip(f"the list is not of CuPy {installed['version']}")
    for module, entries in listed.items():
        both = entries.keys() & installed[module].keys()  # releases of NumPy differ
        assert len(both) >= 0.95 * len(entries)
        assert {name: entries[name] for name in both} == {n: installed[module][n] for n in both}


def test_each_backend_case_passes_or_is_listed_with_its_reason():
    results = onnx_backend.run_in_processes(PROCESSES, "", "cuda:0")
    known = onnx_backend.known_failures(onnx_backend.CUDA_PAGE)
    failed = [r for r in results if not r.passed and not r.reason.startswith("has tensors of")]
    assert [r for r in failed if r.name not in known] == []
    assert sum(r.passed for r in results) >= 800
