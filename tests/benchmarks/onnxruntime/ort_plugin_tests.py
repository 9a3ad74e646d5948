"""Run ONNX Runtime's own Python tests of plugin providers with the provider of Python kernels.

::

    python -m tests.benchmarks.onnxruntime.ort_plugin_tests PATH/test_cuda_plugin_ep.py [more files]

The files are in ``onnxruntime/test/python`` of ONNX Runtime's repository; their helpers must lie
beside them. Only names change: the provider is registered by hand under its own name and offers
devices of one kind, CUDA devices if there are any, and on the host device, memory of a CUDA device
is that of the device "gpu". Prints how many tests of each file passed, and the last line of each
failure.
"""

from __future__ import annotations

import argparse
import sys
import types
import unittest
from pathlib import Path

import onnxruntime

from epprof_nb import _native

PROVIDER = "EpprofExecutionProvider"
HELPER = "cuda_plugin_ep_helper"


def main() -> int:
    """Run the files; return 1 if a test failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--host", action="store_true", help="the host device, also beside a GPU")
    given = parser.parse_args()
    files = given.files
    onnxruntime.register_execution_provider_library(PROVIDER, _native.__file__)
    on_host = given.host or all(map(is_host, ours()))
    listed = onnxruntime.get_ep_devices
    onnxruntime.get_ep_devices = lambda: [
        d for d in listed() if d.ep_name != PROVIDER or is_host(d) == on_host
    ]
    if on_host:  # see run()
        named = onnxruntime.OrtValue.device_name
        onnxruntime.OrtValue.device_name = lambda value: named(value).replace("cuda", "gpu")
    print("device:", ", ".join(d.ep_metadata["device"] for d in ours()))
    sys.modules[HELPER] = helper()
    failures = 0
    for file in files:
        sys.path.insert(0, str(file.parent.resolve()))
        result = run(file, on_host=on_host)
        failed = {name(test): text for test, text in [*result.failures, *result.errors]}
        skipped = {name(test) for test, _ in result.skipped} - {*failed}
        failures += len(failed)
        passed = result.testsRun - len(failed) - len(skipped)
        print(f"{file.name}: {passed} of {result.testsRun} passed, {len(skipped)} skipped")
        for test, text in failed.items():
            print(f"  {test}: {text.strip().splitlines()[-1]}")
    return 1 if failures else 0


def name(test: unittest.TestCase) -> str:
    """Return the name of a test, also of one of its subtests."""
    return getattr(test, "test_case", test).id().rpartition(".")[2]


def ours() -> list[object]:
    """Return the devices of the provider."""
    return [d for d in onnxruntime.get_ep_devices() if d.ep_name == PROVIDER]


def is_host(device: object) -> bool:
    """Whether a device of the provider is the host device."""
    return device.ep_metadata["device"] == "host"


def helper() -> types.ModuleType:
    """Return a module in place of the helper that finds ONNX Runtime's own plugin library."""
    module = types.ModuleType(HELPER)
    module.CUDA_PLUGIN_EP_NAME = PROVIDER
    module.should_test_with_cuda_plugin_ep = lambda *_: True
    module.ensure_cuda_plugin_ep_registered = lambda *_: True
    module.resolve_cuda_plugin_ep = lambda name, *_: (
        PROVIDER if name == "CUDAExecutionProvider" else name
    )
    return module


def run(file: Path, *, on_host: bool) -> unittest.TestResult:
    """Run the tests of a file with our names."""
    text = file.read_text().replace("CUDAExecutionProvider", PROVIDER)
    text = text.replace("cudapluginexecutionprovider", PROVIDER.lower())
    if on_host:
        text = text.replace('"cuda"', '"gpu"')
    module = types.ModuleType(file.stem)
    module.__file__ = str(file)
    sys.modules[file.stem] = module
    exec(compile(text, str(file), "exec"), module.__dict__)
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
    return result


if __name__ == "__main__":
    sys.exit(main())
