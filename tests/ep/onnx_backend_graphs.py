"""ONNX's backend node tests with graph capture: a replay gives the results of an eager run.

::

    python -m tests.ep.onnx_backend_graphs [PATTERN] [--device cuda:0] [--processes 8]

runs all cases that pass in `tests.ep.onnx_backend`, or those that match a pattern, and prints the
cases without a captured graph. All cases write the table of the device:
``docs/onnx_backend_graphs.md``, which a test compares, or ``docs/onnx_backend_cuda_graphs.md``.
``--results FILE`` keeps the outcomes, so that a run that was interrupted can go on.

Each case is run in a session that captures graphs: with its inputs until the graph is replayed,
then with other inputs of the same shapes. The results of each run must equal those of an eager
session, bit for bit.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import multiprocessing
import re
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime

from epprof_nb import _native
from tests.ep import onnx_backend
from tests.ep.sessions import options
from tests.paths import ROOT

PAGE = ROOT / "docs" / "onnx_backend_graphs.md"
CUDA_PAGE = ROOT / "docs" / "onnx_backend_cuda_graphs.md"

HOST_OUTPUT = "all its outputs are in host memory, so it launches nothing that a graph could hold"
CONTROL_FLOW = "ONNX Runtime captures no model with control flow"


class Captured(NamedTuple):
    """The outcome of one case."""

    name: str
    op_type: str
    reason: str
    """Why no graph is captured; empty if one is, and its replays are right."""
    other_inputs: bool
    """Whether the graph was replayed with other inputs, too."""
    failed: bool = False
    """Whether a run failed or gave other results than the eager one."""


def run_case(case, device="host"):
    """Run one case that passes without graphs; return the outcome of its graph."""
    from epprof_nb import ep

    op_type = case.model.graph.node[0].op_type
    serialized = case.model.SerializeToString()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quiet = options(log_severity_level=4)
        eager = ep.session(serialized, device=device, sess_options=quiet)
        made = ep.session(serialized, device=device, enable_cuda_graph=True, sess_options=quiet)
        graphs = made._epprof_graphs
        names = [i.name for i in made.get_inputs()]
        values = [onnx_backend._as_array(value) for value in case.data_sets[0][0]]
        feeds = dict(zip(names, values, strict=False))
        expected = eager.run(None, feeds)
        host_inputs = graphs.host_inputs(made) if graphs is not None else ()
        others = other_feeds(feeds, host_inputs, eager, expected)
        runs = [(feeds, expected)] * 3  # warm up and capture, replay, replay
        if others is not None:
            runs += [(others, eager.run(None, others)), (feeds, expected)]
        for given, wanted in runs:
            for got, value in zip(made.run(None, given), wanted, strict=True):
                assert (got.shape, got.dtype) == (value.shape, value.dtype), case.name
                np.testing.assert_array_equal(got, value, err_msg=case.name)
    return Captured(
        case.name, op_type, why_not(graphs, feeds, caught), other_inputs=others is not None
    )


def why_not(graphs, feeds, caught):
    """Why there is no graph; empty if there is one that holds a launch."""
    if graphs is None:
        assert any("If, Loop or Scan" in str(w.message) for w in caught)
        return CONTROL_FLOW
    slots = list(graphs._threads.slots.by_key.values())
    if any(slot.graph is not None for slot in slots):
        nodes = [n for s in slots if s.graph for n in _native.ep_describe_graph(s.graph)[-1]]
        return "" if nodes else HOST_OUTPUT
    told = [
        re.search(r"was not captured: (?:node '.*?' )?(.*?)\. ", str(w.message)) for w in caught
    ]
    reasons = dict.fromkeys(found[1] for found in told if found)
    assert reasons, "no graph, and no warning that says why"
    return "; ".join(reasons)


def other_feeds(feeds, host_inputs, eager, expected):
    """Other inputs with which the outputs have the same shapes; None if none are found.

    They have the values of the case in another order, so that indices and lengths remain valid.
    """
    movable = [n for n, v in feeds.items() if n not in host_inputs and v.size > 1]
    shapes = [value.shape for value in expected]
    # All at once if possible; indices and sizes may be valid only in their places.
    for count in range(len(movable), 0, -1):
        for chosen in itertools.combinations(movable, count):
            others = {n: reordered(v) if n in chosen else v for n, v in feeds.items()}
            if all(others[n].tobytes() == feeds[n].tobytes() for n in chosen):
                continue
            try:
                found = eager.run(None, others)
            except Exception:
                continue
            if [value.shape for value in found] == shapes:
                return others
    return None


def reordered(value):
    """The elements of an array, the last first."""
    return value.reshape(-1)[::-1].reshape(value.shape).copy()


@functools.cache
def _cases():
    return {case.name: case for case in onnx_backend.load_cases()}


def passing_cases(pattern="", device="host"):
    """Yield the cases that pass without graphs, as the page of `tests.ep.onnx_backend` says."""
    page = onnx_backend.PAGE if device == "host" else onnx_backend.CUDA_PAGE
    failed = onnx_backend.known_failures(page)
    for case in _cases().values():
        chosen = re.search(pattern, case.name) and case.name not in failed
        if chosen and onnx_backend.is_loaded(case.model.SerializeToString()):
            # `run` takes no arrays of ml_dtypes.
            yield from () if onnx_backend.strange_types(case.model) else (case,)


def outcome(name, device):
    """Run the case of this name; return its outcome, also after an error."""
    case = _cases()[name]
    try:
        return run_case(case, device)
    except Exception as error:
        op_type = case.model.graph.node[0].op_type
        reason = f"{type(error).__name__}: {error}"
        return Captured(name, op_type, one_line(reason), other_inputs=False, failed=True)


def one_line(reason):
    """A reason in one line of at most 300 characters, with paths from the package on."""
    text = re.sub(r"/[^\s:]*/(?=epprof_nb/)", "", " ".join(reason.split())).replace("|", "\\|")
    return text if len(text) <= 300 else text[:299] + "…"


def run_all(names, device="host", processes=1):
    """Yield the outcomes of the cases of these names, as they become known."""
    if processes == 1:
        yield from (outcome(name, device) for name in names)
        return
    # Loading the cases takes longer than running many of them. This process avoids CUDA.
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes, mp_context=fork) as pool:
        for done in as_completed([pool.submit(outcome, name, device) for name in names]):
            yield done.result()


def listed(page=PAGE):
    """Names of the cases that run eagerly, as a table has them."""
    return set(re.findall(r"^\| `(\w+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE))


_HEAD = """# ONNX's backend node tests with graphs{title}

The node tests that pass (see [without graphs]({without})), again with `enable_cuda_graph` on
{device}: onnx {onnx}, ONNX Runtime {ort}. Each session warms up, captures a graph and
replays it, twice with the inputs of the case and once with their values in another order. The
results of each run must equal those of an eager session, bit for bit.

A graph holds the node in **{captured} of {total}** cases, and each replay is right. {others} of
them were replayed with other inputs; the other {same} have none of the same shapes that are valid.
A case of which no graph is captured runs eagerly, with the right result. So does a session with
`If`, `Loop` or `Scan`: ONNX Runtime captures no model with control flow, and a warning says so.

This page is generated by `{command}`.
"""
_COMMAND = "python -m tests.ep.onnx_backend_graphs"


def page(results, device="host"):
    """The text of the page with the cases of which no graph is captured."""
    captured = [r for r in results if not r.reason]
    others = sum(r.other_inputs for r in captured)
    of_device = {
        **onnx_backend.described(device),
        "without": (onnx_backend.PAGE if device == "host" else onnx_backend.CUDA_PAGE).name,
        "command": _COMMAND if device == "host" else f"{_COMMAND} --device {device}",
    }
    lines = [
        _HEAD.format(
            onnx=onnx.__version__, ort=onnxruntime.__version__, captured=len(captured),
            total=len(results), others=others, same=len(captured) - others, **of_device,
        ),
        "## Cases that run eagerly\n", "| case | operator | reason |", "|---|---|---|",
        *(f"| `{r.name}` | {r.op_type} | {one_line(r.reason)} |" for r in results
          if r.reason),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def kept(file):
    """The outcomes of an earlier run by the name of the case; those that failed run again."""
    if file is None or not file.exists():
        return {}
    found = [Captured(*json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]
    return {result.name: result for result in found if not result.failed}


def main():
    """Print the cases that run eagerly, and the numbers; write the table if all cases ran."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--device", default="host", help="host or cuda:0")
    parser.add_argument("--processes", type=int, default=1, help="number of processes")
    parser.add_argument("--results", type=Path, help="file of outcomes, read and continued")
    args = parser.parse_args()
    results = kept(args.results)
    names = [case.name for case in passing_cases(args.pattern, args.device)]
    missing = [name for name in names if name not in results]
    for result in run_all(missing, args.device, args.processes):
        results[result.name] = result
        if result.reason:
            print(f"{result.name}{' FAILED' * result.failed}: {result.reason}", flush=True)
        if args.results is not None:
            with args.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
    found = [results[name] for name in names]
    captured = sum(not result.reason for result in found)
    failed = sum(result.failed for result in found)
    print(f"{captured} of {len(found)} captured on {args.device}, {failed} failed")
    print(f"{sum(result.other_inputs for result in found)} with other inputs")
    if not (args.pattern or failed):
        file = PAGE if args.device == "host" else CUDA_PAGE
        file.write_text(page(found, args.device), encoding="utf-8")


if __name__ == "__main__":
    main()
