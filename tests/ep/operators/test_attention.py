"""Attention of ONNX's own domain, with caches and sizes that are known at run time only."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from tests.ep.sessions import OURS, on_cpu, one_node, placement, session

# Releases differ in what their CPU providers give, and in the opsets that they know.
pytestmark = pytest.mark.release_independent

HEADS, SIZE = 4, 8
rng = np.random.default_rng(0)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def has_opset(opset):
    from epprof_nb.ep import operator_schemas

    return operator_schemas.exists("Attention", "", opset)


OPSETS = [
    pytest.param(n, marks=pytest.mark.skipif(not has_opset(n), reason=f"no Attention of opset {n}"))
    for n in (23, 24, 25)
]


def decoder(rows, past, *, flat, shared=HEADS):
    """Inputs and attributes of a step that adds `rows` keys to a cache of `past`."""
    sizes = (HEADS, shared, shared)
    new = [floats(2, rows, n * SIZE) if flat else floats(2, n, rows, SIZE) for n in sizes]
    cache = [floats(2, shared, past, SIZE) for _ in "kv"]
    attributes = {"q_num_heads": HEADS, "kv_num_heads": shared} if flat else {}
    return (*new, None, *cache), attributes


@pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "symbolic"])
@pytest.mark.parametrize("flat", [True, False], ids=["3d", "4d"])
@pytest.mark.parametrize(("rows", "past"), [(3, 0), (1, 4), (3, 4)])
@pytest.mark.parametrize("opset", OPSETS)
def test_a_decoder_gives_what_the_cpu_provider_gives(provider, opset, rows, past, flat, fixed):
    inputs, attributes = decoder(rows, past, flat=flat)
    serialized, feeds = one_node(
        "Attention", inputs, attributes, outputs=4, opset=opset, fixed=fixed
    )
    ours = session(serialized, provider())
    assert placement(ours)["node"] == OURS
    expected = on_cpu(serialized).run(None, feeds)
    assert expected[1].shape == (2, HEADS, past + rows, SIZE)
    for value, wanted in zip(ours.run(None, feeds), expected, strict=True):
        assert value.shape == wanted.shape
        np.testing.assert_allclose(value, wanted, rtol=2e-5, atol=2e-5)


def test_a_cache_may_grow_from_run_to_run(provider):
    inputs, attributes = decoder(1, 4, flat=True, shared=2)
    serialized, feeds = one_node("Attention", inputs, attributes, outputs=3, opset=23)
    ours, cpu = session(serialized, provider()), on_cpu(serialized)
    for step in range(3):
        got, expected = ours.run(None, feeds), cpu.run(None, feeds)
        assert got[1].shape == (2, 2, 5 + step, SIZE)
        for value, wanted in zip(got, expected, strict=True):
            np.testing.assert_allclose(value, wanted, rtol=2e-5, atol=2e-5)
        feeds["i4"], feeds["i5"] = got[1:]


@pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "symbolic"])
@pytest.mark.parametrize("flat", [True, False], ids=["3d", "4d"])
@pytest.mark.parametrize("opset", OPSETS)
def test_a_step_without_queries_keeps_the_cache(provider, opset, flat, fixed):
    window = {"left_window_size": 2, "right_window_size": 0} if opset == 25 else {}
    inputs, attributes = decoder(0, 4, flat=flat)
    serialized, feeds = one_node(
        "Attention", inputs, {**attributes, **window}, outputs=4, opset=opset, fixed=fixed
    )
    y, key, value, scores = session(serialized, provider()).run(None, feeds)
    assert y.shape == ((2, 0, HEADS * SIZE) if flat else (2, HEADS, 0, SIZE))
    assert scores.shape == (2, HEADS, 0, 4)
    np.testing.assert_array_equal(key, inputs[4])
    np.testing.assert_array_equal(value, inputs[5])


def test_heads_that_do_not_share_keys_evenly_are_refused(provider):
    q, k, v = floats(1, 3, 2, SIZE), floats(1, 2, 4, SIZE), floats(1, 2, 4, SIZE)
    serialized, feeds = one_node("Attention", (q, k, v), opset=23)
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.Fail, match="reshape"):
        session(serialized, provider()).run(None, feeds)


def test_a_kernel_of_the_user_may_give_shapes_that_are_inferred_wrongly(ep):
    @ep.kernel("Attention", types="float32", since=23)
    def attention(ctx, q, k, v, mask, past_key, past_value):
        ctx.out(q.shape)[...] = 0
        for past, new in ((past_key, k), (past_value, v)):
            ctx.out((*past.shape[:2], past.shape[2] + new.shape[2], past.shape[3]))[...] = 0
        ctx.out((*q.shape[:3], past_key.shape[2] + k.shape[2]))[...] = 1

    inputs, attributes = decoder(1, 4, flat=False)
    serialized, feeds = one_node("Attention", inputs, attributes, outputs=4, opset=23)
    scores = session(serialized, ep.provider("host", only=["Attention"])).run(None, feeds)[3]
    np.testing.assert_array_equal(scores, np.ones((2, HEADS, 1, 5)))
