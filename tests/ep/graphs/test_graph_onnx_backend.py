"""ONNX's backend node tests in graphs, one case per operator.

``python -m tests.ep.onnx_backend_graphs`` runs all cases.
"""

from __future__ import annotations

import re

import pytest

from tests.ep import onnx_backend, onnx_backend_graphs

OPERATORS = onnx_backend.passing_operators()


@pytest.fixture(scope="module")
def cases():
    """The cases that pass, by operator."""
    failed = onnx_backend.known_failures()
    found = {}
    for case in onnx_backend.load_cases():
        # `run`, and so a graph with inputs of the host, has only types that NumPy itself has.
        if case.name not in failed and not onnx_backend.strange_types(case.model):
            found.setdefault(case.model.graph.node[0].op_type, []).append(case)
    return found


@pytest.fixture(scope="module")
def listed():
    return onnx_backend_graphs.listed()


@pytest.mark.release_independent
@pytest.mark.parametrize("op_type", OPERATORS)
def test_a_replay_gives_what_an_eager_run_gives(cases, listed, op_type):
    loaded = (c for c in cases[op_type] if onnx_backend.is_loaded(c.model.SerializeToString()))
    case = next(loaded, None)
    if case is None:
        pytest.skip("this release of ONNX Runtime does not know it")
    result = onnx_backend_graphs.run_case(case)
    assert (case.name in listed) == bool(result.reason), result


@pytest.mark.release_independent
@pytest.mark.parametrize(
    ("without", "with_graphs"),
    [
        (onnx_backend.PAGE, onnx_backend_graphs.PAGE),
        (onnx_backend.CUDA_PAGE, onnx_backend_graphs.CUDA_PAGE),
    ],
    ids=["host", "cuda"],
)
def test_the_table_is_of_the_cases_that_pass(without, with_graphs):
    text = with_graphs.read_text(encoding="utf-8")
    page = without.read_text(encoding="utf-8")
    passed, small_floats = re.search(r"\*\*(\d+) pass\*\*, (\d+) of them", page).groups()
    captured, total = re.search(r"\*\*(\d+) of (\d+)\*\*", text).groups()
    assert int(total) == int(passed) - int(small_floats)
    listed = onnx_backend_graphs.listed(with_graphs)
    assert int(captured) + len(listed) == int(total)
    assert not listed & onnx_backend.known_failures(without)
