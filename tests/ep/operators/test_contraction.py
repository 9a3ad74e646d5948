"""Einstein sums as products of stacks of matrices."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.ep.kernels.math import contraction
from tests.ep.sessions import one_node

SIZES = {"i": 2, "j": 3, "k": 4, "b": 5, "h": 6}
EQUATIONS = [
    "ij,jk->ik", "ij,jk", "ij,kj->ik", "ji,jk->ki", "bij,bjk->bik", "bij,jk->bik", "bhi,bhj->bhij",
    "bihj,bkhj->bhik", "i,j->ij", "i,i->", "ij,ij->", "ij,ij", "bij,bij->b", "ij,ij->ij", "i,ij->j",
    "bi,bj->jbi",
]  # fmt: skip


@pytest.mark.parametrize("equation", EQUATIONS)
def test_results_are_those_of_numpy(equation):
    terms = equation.partition("->")[0].split(",")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, [SIZES[i] for i in t]).astype(np.float32) for t in terms)
    got = contraction.contract(contraction.parse(equation), a, b)
    wanted = np.einsum(equation, a, b)
    assert got.shape == wanted.shape
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    "equation", ["ij->ji", "ij,jk,kl->il", "...i,ij->...j", "ii,ij->j", "ij,jk->k", "ij,k->ik", "i"]
)
def test_other_equations_are_left_to_the_array_module(equation):
    assert contraction.parse(equation) is None


@pytest.mark.parametrize(
    ("left", "right", "fits"),
    [
        ((2, 3), (3, 5), True),
        ((2, 3), (4, 5), False),
        ((2, 3), (1, 5), False),  # NumPy broadcasts it
        ((2, 3, 4), (3, 4), False),
    ],
)
def test_shapes_that_do_not_fit_are_left_to_it_too(left, right, fits):
    how = contraction.parse("ij,jk->ik")
    assert contraction.fits(how, np.ones(left), np.ones(right)) == fits


def test_nodes_on_cuda_devices(ep, fake_cuda):
    values = [np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 2), np.float32)]
    for equation, inputs in (("ij,jk->ik", values), ("ij,kj->ik", [values[0], values[0]])):
        serialized, feeds = one_node("Einsum", inputs, {"equation": equation})
        (got,) = ep.session(serialized, device="cuda:0").run(None, feeds)
        np.testing.assert_array_equal(got, np.einsum(equation, *inputs))
