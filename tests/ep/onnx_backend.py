"""ONNX's backend node tests, each run with its node on the provider with kernels in Python.

::

    python -m tests.ep.onnx_backend [PATTERN] [--device cuda:0] [--processes 4]

runs all cases, or those that match a pattern, and prints those that do not pass. All cases write
the table of the device: ``docs/onnx_backend.md``, which a test compares, or
``docs/onnx_backend_cuda.md``.

A case counts only if the session reports the node under test on our provider and its kernel was
called: fallback to another provider, constant folding and expanded functions do not count.
The oracle is the expected output of the case.
"""

from __future__ import annotations

import argparse
import multiprocessing
import pickle
import re
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, numpy_helper

from epprof_nb.ep import types
from tests.ep.sessions import OURS, CallCounter, options, placement
from tests.helpers.made_once import made_once
from tests.paths import ROOT

NUMERIC = frozenset(range(1, 14)) - {TensorProto.STRING}
SUPPORTED = frozenset(types.SMALL_FLOATS.values())
"""Types that NumPy has from ml_dtypes."""
BFLOAT16_TOLERANCE = 2**-7
CONTROL_FLOW = {"If", "Loop", "Scan"}  # kernels of ONNX Runtime itself, on our device
DOCS = ROOT / "docs"
PAGE = DOCS / "onnx_backend.md"
CUDA_PAGE = DOCS / "onnx_backend_cuda.md"

NO_PROVIDER = "no provider has a kernel"
NO_KERNEL = "no kernel"
NOT_CALLED = "the kernel was not called"

_RANDOM = "random numbers that differ from run to run, or by generator"
_ROUNDING = "expects the rounding errors of NumPy's transform to 1e-7; the CPU provider is 7e-6 off"
_CORNERS = "expects an output size that is not rounded, unlike ONNX Runtime's CPU provider"
_REASONS = {
    "test_bernoulli": _RANDOM,
    "test_bernoulli_double": _RANDOM,
    "test_bernoulli_seed": _RANDOM,
    "test_constant": "ONNX Runtime turns the node into a weight of the model before the run",
    "test_dft_inverse": _ROUNDING,
    "test_dft_inverse_opset19": _ROUNDING,
    "test_resize_downsample_scales_cubic_align_corners": _CORNERS,
    "test_resize_downsample_scales_linear_align_corners": _CORNERS,
    "test_scan_sum": "Scan of opset 8, which ONNX Runtime runs on its CPU provider only",
}
"""Reasons that a message does not give."""


class Result(NamedTuple):
    """The outcome of one case."""

    name: str
    op_type: str
    passed: bool
    reason: str
    """Why it does not pass; empty if it does."""
    small_floats: bool = False
    """Whether it has tensors of types from ml_dtypes."""


def load_cases():
    """Node tests with plain tensors that are not the expansion of a function."""
    # ONNX computes the expected outputs, slowly.
    releases = f"{onnx.__version__}-{np.__version__}"
    cases = pickle.loads(made_once(f"onnx-cases-{releases}.pickle", _write_cases).read_bytes())
    return [case for case in cases if "_expanded" not in case.name and _has_tensors_only(case)]


def _write_cases(path):
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path.write_bytes(pickle.dumps(load_model_tests(kind="node")))


def _has_tensors_only(case):
    graph = case.model.graph
    return all(v.type.HasField("tensor_type") for v in (*graph.input, *graph.output))


def known_failures(page=PAGE):
    """Names of the cases that do not pass, as a table has them."""
    return set(re.findall(r"^\| `(\w+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE))


def listed_releases():
    """Releases of onnx and of ONNX Runtime that the table is of."""
    text = PAGE.read_text(encoding="utf-8")
    return re.search(r"onnx ([\d.]+), ONNX Runtime ([\d.]+)\. Each", text).groups()


def passing_operators():
    """Operators with a case that passes, as the table has them."""
    rows = re.findall(
        r"^\| (\w+) \| (\d+) \| \d+ \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    return [op_type for op_type, passed in rows if int(passed)]


def is_loaded(serialized):
    """Whether ONNX Runtime accepts the model, with or without a kernel for its nodes."""
    quiet = options(log_severity_level=4)
    try:
        onnxruntime.InferenceSession(serialized, quiet, providers=["CPUExecutionProvider"])
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        return True
    except Exception:
        return False
    return True


def run_case(case, entry, counter):
    """Run one case; return its `Result`, or None if ONNX Runtime does not load its model."""
    serialized = case.model.SerializeToString()
    node = case.model.graph.node[0]
    if not is_loaded(serialized):
        return None

    def failed(reason):
        told = _REASONS.get(case.name, reason)
        return Result(case.name, node.op_type, passed=False, reason=told)

    strange = strange_types(case.model)
    if strange - SUPPORTED:
        names = ", ".join(sorted(TensorProto.DataType.Name(n).lower() for n in strange - SUPPORTED))
        return failed(f"has tensors of {names}")
    try:
        session = onnxruntime.InferenceSession(
            serialized, options(log_severity_level=4),
            providers=[entry, "CPUExecutionProvider"], enable_fallback=0,
        )  # fmt: skip
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        return failed(NO_PROVIDER)
    except Exception as error:
        # How 1.32 says so if a provider of another device is registered.
        nobody = "IsNodeCompatibleWithProvider" in str(error)
        return failed(NO_PROVIDER if nobody else _first_line(error))
    assigned = [provider for _, provider in sorted(placement(session).items())]
    if OURS not in assigned:
        return failed(NO_KERNEL)
    names = [i.name for i in session.get_inputs()]
    for inputs, expected in case.data_sets:
        counter.calls.clear()
        try:
            feeds = [_as_array(value) for value in inputs]
            wanted = [_as_array(value) for value in expected]
            given = dict(zip(names, feeds, strict=False))
            got = run_bound(session, given, wanted) if strange else session.run(None, given)
            _compare(got, wanted, case)
        except Exception as error:
            return failed(_first_line(error))
        if node.op_type not in CONTROL_FLOW and not counter.calls.get((node.domain, node.op_type)):
            return failed(NOT_CALLED)
    return Result(case.name, node.op_type, passed=True, reason="", small_floats=bool(strange))


def strange_types(model):
    """Element types of the inputs and outputs that NumPy itself lacks."""
    values = (*model.graph.input, *model.graph.output)
    return {v.type.tensor_type.elem_type for v in values} - NUMERIC


def run_bound(session, feeds, expected):
    """Run a session whose inputs or outputs NumPy has from ml_dtypes, which `run` does not take.

    Outputs get memory of the expected shapes; ONNX Runtime refuses others.
    """
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_ortvalue_input(name, _as_value(value)[0])
    results = []
    for output, value in zip(session.get_outputs(), expected, strict=True):
        bound, array = _as_value(np.zeros_like(value))
        binding.bind_ortvalue_output(output.name, bound)
        results.append(array)
    session.run_with_iobinding(binding)
    return results


def _as_value(array):
    """An OrtValue over the memory of an array, and the array."""
    array = np.ascontiguousarray(array).reshape(np.shape(array))
    bits = array.view(np.dtype(f"u{array.itemsize}"))
    number = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, number), array


def _as_array(value):
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value)


def _compare(got, expected, case):
    assert len(got) == len(expected), f"{len(got)} outputs instead of {len(expected)}"
    for value, wanted in zip(got, expected, strict=True):
        assert value.dtype == wanted.dtype, f"dtype {value.dtype} instead of {wanted.dtype}"
        assert value.shape == wanted.shape, f"shape {value.shape} instead of {wanted.shape}"
        rtol, atol = case.rtol, case.atol
        if wanted.dtype.kind == "V" or wanted.dtype.itemsize == 1:
            # Expected outputs in bfloat16 have the rounding errors of each step.
            rough = BFLOAT16_TOLERANCE if wanted.dtype.name == "bfloat16" else 0
            rtol, atol = max(rtol, rough), max(atol, rough)
            value, wanted = value.astype(np.float32), wanted.astype(np.float32)  # noqa: PLW2901
        np.testing.assert_allclose(value, wanted, rtol=rtol, atol=atol)


def _first_line(error):
    text = str(error).strip()
    found = re.search(r"The kernel of .*? failed: (.*)", text)
    if found:
        return found[1]
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and lines[0].startswith("Not equal"):
        return " ".join(line.strip() for line in lines[1:3])
    return lines[0][:200] if lines else type(error).__name__


def run_all(cases, device="host"):
    """Run these cases; return the results of those that ONNX Runtime loads."""
    from epprof_nb import ep
    from epprof_nb.ep.kernel import REGISTRY

    entry = ep.provider(device)
    with CallCounter(REGISTRY.kernels()) as counter:
        results = [run_case(case, entry, counter) for case in cases]
    return [result for result in results if result is not None]


def _run_share(number, count, pattern, device):
    """Run the cases from a number on, in steps of `count`; return the results by case."""
    cases = matching_cases(pattern)[number::count]
    return {result.name: result for result in run_all(cases, device)}


def run_in_processes(count, pattern, device):
    """Run the cases that match a pattern, in several processes."""
    spawn = multiprocessing.get_context("spawn")  # CUDA does not work after a fork
    found = {}
    with ProcessPoolExecutor(count, mp_context=spawn) as pool:
        for share in [
            pool.submit(_run_share, number, count, pattern, device) for number in range(count)
        ]:
            found |= share.result()
    return [found[case.name] for case in matching_cases(pattern) if case.name in found]


def matching_cases(pattern):
    """Cases whose names match a pattern."""
    return [case for case in load_cases() if re.search(pattern, case.name)]


_HEAD = """# ONNX's backend node tests{title}

The node tests of `onnx.backend.test` on {device}: onnx {onnx}, ONNX Runtime {ort}. Each
case is one node, run through a session of ONNX Runtime, and compared with the output that comes
with the case. It passes if the session reports the node on `EpprofExecutionProvider` and its kernel
was called. Fallback to another provider, constant folding and expanded functions do not count.
Cases with sequences or optionals, and the expansions of functions (`_expanded`), are left out.

ONNX Runtime loads {loaded} cases. **{passed} pass**, {small} of them with bfloat16 or floats of 8
bits. Of the others, {strange} have tensors of types that arrays of the device lack.

This page is generated by `{command}`.
"""
_COMMAND = "python -m tests.ep.onnx_backend"


def described(device):
    """Parts of the page that describe a device."""
    if device == "host":
        return {"title": "", "device": "the host device", "command": _COMMAND}
    import cupy

    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    return {
        "title": " on CUDA", "device": f"{name} with CuPy {cupy.__version__}",
        "command": f"{_COMMAND} --device {device}",
    }  # fmt: skip


def page(results, device="host"):
    """The text of the page with the table of all operators, and of the cases that do not pass."""
    failed = [r for r in results if not r.passed]
    strange = [r for r in failed if r.reason.startswith("has tensors of")]
    lines = [
        _HEAD.format(
            onnx=onnx.__version__, ort=onnxruntime.__version__, loaded=len(results),
            passed=len(results) - len(failed), strange=len(strange),
            small=sum(r.small_floats for r in results), **described(device),
        ),
        "## Cases that do not pass\n", "| case | operator | reason |", "|---|---|---|",
        *(f"| `{r.name}` | {r.op_type} | {r.reason} |" for r in failed),
        "\n## Operators\n", "| operator | passed | cases |", "|---|---:|---:|",
    ]  # fmt: skip
    for op_type in sorted({r.op_type for r in results}):
        of_type = [r for r in results if r.op_type == op_type]
        lines.append(f"| {op_type} | {sum(r.passed for r in of_type)} | {len(of_type)} |")
    return "\n".join(lines) + "\n"


def main():
    """Print the cases that do not pass, and the numbers; write the table if it is of all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="", help="regular expression of the names")
    parser.add_argument("--device", default="host", help="host or cuda:0")
    parser.add_argument("--processes", type=int, default=1, help="number of processes")
    args = parser.parse_args()
    if args.processes > 1:
        results = run_in_processes(args.processes, args.pattern, args.device)
    else:
        results = run_all(matching_cases(args.pattern), args.device)
    for result in results:
        if not result.passed:
            print(f"{result.name}: {result.reason}")
    print(f"{sum(r.passed for r in results)} of {len(results)} passed on {args.device}")
    if not args.pattern:
        file = PAGE if args.device == "host" else CUDA_PAGE
        file.write_text(page(results, args.device), encoding="utf-8")


if __name__ == "__main__":
    main()
