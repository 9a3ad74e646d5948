"""ONNX Runtime's own Python tests of operators, each session also on the provider.

::

    python -m tests.ep.ort_operator_tests FOLDER [PATTERN] [--device cuda:0] [--processes 2]

FOLDER is a checkout of ONNX Runtime's sources. Each session that the tests create on the CPU
provider is created a second time with the provider in front, and each run is repeated there with
the same inputs. The tests get the results of the CPU provider. A configuration is a model with
shapes of its inputs, of which the provider has a node. The command prints those whose outputs
differ, and their number. It is 1 if one differs.

Where they differ, ONNX Runtime's fusions may be the reason: integer convolutions round elsewhere
than the QuantizeLinear nodes of the model do. A run that equals the CPU provider's without fusions
does not count.

The tests need ``parameterized``, ``einops`` and PyTorch. Their failures are not counted: a run that
the CPU provider refuses counts as a difference if the provider gives a result.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.ep.sessions import CPU, OURS
from tests.paths import ROOT

BELOW = Path("onnxruntime/test/python")
FILES = (
    "onnxruntime_test_float8.py", "onnxruntime_test_scatternd.py",
    "onnxruntime_test_python_backend.py", "onnxruntime_test_python_backend_mlops.py",
    "onnxruntime_test_python_mlops.py", "onnxruntime_test_python_sparse_matmul.py",
    "quantization/test_*.py", "contrib_ops/*test_*.py",
    "transformers/test_gqa_cpu*.py", "transformers/test_mha.py", "transformers/test_moe_cpu.py",
    "transformers/test_onnx_attention/test_*.py", "transformers/test_parity_*.py",
    "transformers/test_*qmoe*.py", "transformers/test_rotary_*.py",
    "transformers/test_sparse_attention.py", "transformers/test_paged_attention*.py",
)  # fmt: skip
"""Patterns of files below the folder of the tests."""
TOLERANCE = {np.dtype(np.float16): 5e-3, np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-6}
"""Relative to the largest number of the tensor. Integers may differ by rounding: by 1."""
ROUNDING = "ORT_USE_MLAS_Q4_GEMM_MOE"
"""Variable with which the CPU provider rounds experts of 4 bits once more; not compared."""
_SECONDS = 3000

_Session = onnxruntime.InferenceSession


def difference(got, wanted):
    """The difference of two outputs, in words; None if there is none."""
    if not isinstance(wanted, np.ndarray):
        return None if got == wanted else "values differ"
    if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
        return f"{got.dtype}{list(got.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
    if wanted.dtype.kind not in "fiuV" or not wanted.size:
        return None if np.array_equal(got, wanted) else "values differ"
    kind = wanted.dtype
    wide = [x.astype(np.float64) for x in (got, wanted)]
    kinds = [np.isnan(x) + 2 * np.isposinf(x) + 3 * np.isneginf(x) for x in wide]
    if (kinds[0] != kinds[1]).any():
        return f"NaN or infinity in {np.count_nonzero(kinds[0] != kinds[1])} other places"
    got, wanted = (np.where(kinds[0], 0, x) for x in wide)
    if kind.kind in "iu":
        allowed = 1
    elif kind in TOLERANCE:
        allowed = TOLERANCE[kind] * max(1, np.abs(wanted).max())
    else:
        allowed = 0
    error = np.abs(got - wanted).max()
    return f"by {error:.3g}" if error > allowed else None


def told_differences(got, wanted):
    """The differences of all outputs, in words; empty if there is none."""
    words = (difference(g, w) for g, w in zip(got, wanted, strict=True))
    return "; ".join(f"output {n} {word}" for n, word in enumerate(words) if word)


class Binding(onnxruntime.IOBinding):
    """A binding that knows its inputs."""

    def __init__(self, session):
        super().__init__(session)
        self.given = {}

    def bind_cpu_input(self, name, arr_on_cpu):
        self.given[name] = lambda: arr_on_cpu
        super().bind_cpu_input(name, arr_on_cpu)

    def bind_ortvalue_input(self, name, ortvalue):
        self.given[name] = ortvalue.numpy
        super().bind_ortvalue_input(name, ortvalue)

    def bind_input(self, name, device_type, device_id, element_type, shape, buffer_ptr):
        kind = np.dtype(
            onnx.helper.tensor_dtype_to_np_dtype(element_type)
            if isinstance(element_type, int)
            else element_type
        )
        nbytes = kind.itemsize * int(np.prod(shape, dtype=np.int64))
        self.given[name] = lambda: np.frombuffer(
            ctypes.string_at(buffer_ptr, nbytes), kind
        ).reshape(shape)
        super().bind_input(name, device_type, device_id, element_type, shape, buffer_ptr)


class Both(_Session):
    """A session on the CPU provider whose runs are repeated on the provider."""

    found: dict = {}  # noqa: RUF012 - of all sessions of this process
    entry = None

    def __init__(self, path_or_bytes, sess_options=None, providers=None, *args, **kwargs):
        del providers
        model = path_or_bytes
        if not isinstance(model, bytes):
            model = Path(model).read_bytes()
        self._key = hashlib.sha1(model, usedforsecurity=False).hexdigest()[:12]
        super().__init__(path_or_bytes, sess_options, [CPU], *args, **kwargs)
        self._model = path_or_bytes
        self._other, self._nodes = None, ""
        own = onnxruntime.SessionOptions()
        if sess_options is not None:
            own.graph_optimization_level = sess_options.graph_optimization_level
        own.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        own.log_severity_level = 4
        try:
            other = _Session(path_or_bytes, own, [type(self).entry, CPU])
        except Exception as error:
            self._note((), f"no session: {str(error).splitlines()[0][:150]}")
            return
        nodes = {
            node.op_type
            for part in other.get_provider_graph_assignment_info()
            if part.ep_name == OURS
            for node in part.get_nodes()
        }
        if nodes:
            self._other, self._nodes = other, " ".join(sorted(nodes))

    def _note(self, shapes, what):
        test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0].partition("::")[2]
        known = self.found.get((self._key, shapes))
        if known is None or (what and not known[2]):
            self.found[self._key, shapes] = (test, self._nodes, what)

    def run(self, output_names, input_feed, run_options=None):
        feeds = {name: np.array(value) for name, value in input_feed.items()}
        return self._both(
            feeds,
            output_names,
            lambda: super(Both, self).run(output_names, input_feed, run_options),
        )

    def io_binding(self):
        return Binding(self)

    def run_with_iobinding(self, iobinding, run_options=None):
        feeds = {name: np.array(value()) for name, value in iobinding.given.items()}

        def on_cpu():
            super(Both, self).run_with_iobinding(iobinding, run_options)
            return [np.array(x) for x in iobinding.copy_outputs_to_cpu()]

        names = list(iobinding._bound_outputs)
        self._both(feeds, names, on_cpu)

    def _both(self, feeds, names, on_cpu):
        if self._other is None or os.environ.get(ROUNDING, "0") != "0":
            return on_cpu()
        shapes = tuple((name, str(v.dtype), v.shape) for name, v in sorted(feeds.items()))
        try:
            wanted = on_cpu()
        except Exception:
            with contextlib.suppress(Exception):
                self._other.run(names, feeds)
                self._note(shapes, "a result that the CPU provider refuses")
            raise
        try:
            got = self._other.run(names, feeds)
        except Exception as error:
            self._note(shapes, f"failed: {str(error).splitlines()[0][:300]}")
        else:
            told = told_differences(got, wanted)
            if told and not told_differences(got, self._unfused().run(names, feeds)):
                told = ""
            self._note(shapes, told)
        return wanted

    def _unfused(self):
        own = onnxruntime.SessionOptions()
        own.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return _Session(self._model, own, [CPU])


def run_file(file, device):
    """Run the tests of one file with each session doubled; print the configurations as JSON."""
    from epprof_nb import ep

    Both.entry = ep.provider(device)
    onnxruntime.InferenceSession = Both
    onnxruntime.IOBinding = Binding
    onnxruntime.get_available_providers = lambda: [CPU]
    sys.path[:0] = [str(file.parent), str(file.parents[1])]
    code = pytest.main(
        ["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-o", "addopts=",
         "--rootdir", str(file.parent), "-c", os.devnull, str(file)]
    )  # fmt: skip
    print(_MARK + json.dumps([int(code), list(Both.found.values())]))


_MARK = "configurations: "


def configurations(file, device):
    """Configurations of a test file, in a process of its own: test, nodes and what differs.

    The last line of what the process prints is the reason if there are none.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.ep.ort_operator_tests", "--device", device]
        done = subprocess.run(
            [*command, "--file", file],
            cwd=folder, env={**os.environ, "PYTHONPATH": _path()}, text=True, timeout=_SECONDS,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    lines = done.stdout.strip().splitlines() or [""]
    result = next((x for x in lines if x.startswith(_MARK)), None)
    if result is None:
        return None, [f"exit code {done.returncode}: {lines[-1]}"]
    summary = next((x for x in reversed(lines) if re.search(r" in [\d.]+s", x)), lines[-1])
    return summary, json.loads(result.removeprefix(_MARK))[1]


def _path():
    return os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


def main():
    """Print the configurations that differ and their number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="checkout of ONNX Runtime")
    parser.add_argument("pattern", nargs="?", default="", help="regular expression of file names")
    parser.add_argument("--device", default="host", help="host or cuda:0")
    parser.add_argument("--processes", type=int, default=1, help="number of processes")
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.file is not None:
        run_file(args.file, args.device)
        return
    if args.folder is None or not (args.folder / BELOW).is_dir():
        parser.error(f"{args.folder} has no folder {BELOW}: give a checkout of ONNX Runtime")
    below = (args.folder / BELOW).resolve()
    files = [f for pattern in FILES for f in sorted(below.glob(pattern))]
    files = [f for f in files if re.search(args.pattern, str(f.relative_to(below)))]
    total = differing = 0
    with ThreadPoolExecutor(args.processes) as pool:
        results = pool.map(lambda file: configurations(file, args.device), files)
        for file, (summary, found) in zip(files, results, strict=True):
            if summary is None:
                print(f"{file.relative_to(below)}: {found[0]}", flush=True)
                continue
            differ = [entry for entry in found if entry[2]]
            routed = sum(bool(entry[1]) for entry in found)
            total, differing = total + routed, differing + len(differ)
            print(f"{file.relative_to(below)}: {routed} routed, {len(differ)} differ ({summary})")
            for test, nodes, what in differ:
                print(f"    {test} [{nodes}]: {what}")
            sys.stdout.flush()
    print(f"{differing} of {total} configurations differ from the CPU provider on {args.device}")
    sys.exit(differing > 0)


if __name__ == "__main__":
    main()
