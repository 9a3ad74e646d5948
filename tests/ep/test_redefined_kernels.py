"""Kernels that are defined again, and the sessions that have them."""

from __future__ import annotations

import gc
import warnings

import numpy as np
import onnxruntime
import pytest

from epprof_nb.core.errors import KernelError
from tests.ep.sessions import CPU, model_of, options, placement, session, sigmoid

DOMAIN = "com.example"


def test_a_redefined_kernel_runs_in_the_next_run(running):
    assert (running(lambda ctx, x: ctx.out(x.shape).fill(1)) == 1).all()
    assert (running(lambda ctx, x: ctx.out(x.shape).fill(2)) == 2).all()


def test_an_error_in_a_definition_says_that_the_previous_kernel_stays(ep, x):
    with pytest.raises(KernelError) as first:
        ep.kernel("Sigmoid")(lambda ctx, x, y: None)
    assert "stays in use" not in str(first.value)  # the package's own is there in any case
    ep.kernel("Sigmoid")(sigmoid)
    made = session(model_of("Sigmoid", {"x": x}), ep.provider("host"))
    before = made.run(None, {"x": x})[0]
    message = r"\. The kernel .* before, `sigmoid`, stays in use\.$"
    for arguments in ({}, {"types": "float33"}, {"since": "14"}):
        with pytest.raises(KernelError, match=message):
            ep.kernel("Sigmoid", **arguments)(lambda ctx, x, y: None)
    np.testing.assert_array_equal(made.run(None, {"x": x})[0], before)


def test_a_kernel_with_other_types_belongs_to_new_sessions(ep, x):
    ep.kernel("Sigmoid")(sigmoid)
    old = session(model_of("Sigmoid", {"x": x}), ep.provider("host"))
    with pytest.warns(UserWarning, match="The types of Sigmoid .* create them again") as seen:
        ep.kernel("Sigmoid", types="float64")(lambda ctx, x: ctx.out(x.shape).fill(3))
    assert seen[0].filename == __file__
    new = session(model_of("Sigmoid", {"x": x}), ep.provider("host"))
    assert placement(new)["node"] == CPU
    assert (old.run(None, {"x": x})[0] != 3).all()
    wide = x.astype(np.float64)
    made = session(model_of("Sigmoid", {"x": wide}, np.float64), ep.provider("host"))
    assert (made.run(None, {"x": wide})[0] == 3).all()


@pytest.mark.parametrize("selected", ["Twice", "Relu"], ids=["in the provider", "on the CPU"])
def test_a_session_follows_a_kernel_whose_declaration_is_as_before(ep, x, selected):
    def define(factor, *, inputs=1):
        def twice(ctx, x):
            np.multiply(x, factor, out=ctx.out(x.shape))

        def other(ctx, x, y):
            raise AssertionError

        ep.kernel("Twice", domain=DOMAIN)(twice if inputs == 1 else other)

    define(2)
    shared = options()
    serialized = model_of("Twice", {"x": x}, domain=DOMAIN)
    providers = [ep.provider("host", only=[selected]), CPU]
    made = onnxruntime.InferenceSession(serialized, shared, providers=providers)
    for _ in range(2):
        with pytest.warns(UserWarning, match="The inputs of Twice .* or define it as before"):
            define(0, inputs=2)
    with warnings.catch_warnings(action="error"):
        define(3)
    np.testing.assert_array_equal(made.run(None, {"x": x})[0], x * 3)
    # The options still hold the operator, which is the same again.
    onnxruntime.InferenceSession(serialized, shared, providers=providers)


def test_each_definition_that_a_session_cannot_use_says_so(ep, x):
    ep.kernel("Sigmoid")(sigmoid)
    old = session(model_of("Sigmoid", {"x": x}), ep.provider("host"))
    for kinds in ("float64", "float64 float16"):
        with pytest.warns(UserWarning, match="create them again"):
            ep.kernel("Sigmoid", types=kinds)(sigmoid)
    old.run(None, {"x": x})
    del old
    gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ep.kernel("Sigmoid", types="float16")(sigmoid)


def test_a_kernel_is_redefined_while_it_runs(ep, x):
    @ep.kernel("Sigmoid")
    def first(ctx, x):
        ep.kernel("Sigmoid")(lambda ctx, x: ctx.out(x.shape).fill(2))
        gc.collect()
        ctx.out(x.shape).fill(1)

    made = session(model_of("Sigmoid", {"x": x}), ep.provider("host"))
    del first
    assert (made.run(None, {"x": x})[0] == 1).all()
    assert (made.run(None, {"x": x})[0] == 2).all()
