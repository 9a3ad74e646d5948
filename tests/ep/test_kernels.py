"""Kernels of users: definition, redefinition, errors, operators without a schema."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from onnx import helper

from epprof_nb.core.errors import KernelError
from tests.ep.sessions import (
    CPU,
    model,
    model_of,
    on_cpu,
    session,
    sigmoid,
)
from tests.helpers.threads import run_all
from tests.ort import models

DOMAIN = "com.example"


def test_the_user_kernel_comes_before_the_package_and_sees_the_node(ep, x):
    seen = []

    @ep.kernel("LeakyRelu")
    def leaky(ctx, x):
        seen.append((ctx.name, ctx.op_type, ctx.domain, dict(ctx.attrs), ctx.device, ctx.xp))
        ctx.out(x.shape, x.dtype)[...] = 7

    made = session(model_of("LeakyRelu", {"x": x}, alpha=0.5), ep.provider("host"))
    assert (made.run(None, {"x": x})[0] == 7).all()
    assert seen == [("node", "LeakyRelu", "", {"alpha": 0.5}, "host", np)]


def test_attributes_have_the_defaults_of_the_schema(ep, x):
    seen = []

    @ep.kernel("LeakyRelu")
    def leaky(ctx, x):
        seen.append(dict(ctx.attrs))
        ctx.out(x.shape)[...] = x

    session(model_of("LeakyRelu", {"x": x}), ep.provider("host")).run(None, {"x": x})
    assert seen[0].keys() == {"alpha"}
    assert seen[0]["alpha"] == pytest.approx(0.01)


def test_an_exception_fails_the_run_with_its_traceback_and_the_session_goes_on(running):
    def broken(ctx, x):
        raise ZeroDivisionError("by nothing")

    with pytest.raises(Exception, match="kernel of node 'node'") as caught:
        running(broken)
    assert "ZeroDivisionError: by nothing" in str(caught.value)
    assert "test_kernels.py" in str(caught.value)
    assert running(sigmoid).shape == (2, 4)


def test_a_text_that_utf8_cannot_encode_costs_no_traceback(running):
    def broken(ctx, x):
        raise ValueError("file \udcff")

    with pytest.raises(Exception, match="kernel of node 'node'") as caught:
        running(broken)
    assert "ValueError: file \\udcff" in str(caught.value)
    assert "test_kernels.py" in str(caught.value)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda ctx, x: x, "returned .*ndarray.*ctx.out"),
        (lambda ctx, x: None, "did not make output 0 .y."),
        (lambda ctx, x: ctx.out(x.shape, "f8") and None, "0 .y. is float32 .*, not float64"),
        (lambda ctx, x: ctx.out(x.shape, "no dtype") and None, "'no dtype'"),
        (lambda ctx, x: ctx.out(x.shape, index=1) and None, "has 1 output; .* number 1"),
        (lambda ctx, x: ctx.out((2, -4)) and None, "dimension 1 is negative"),
        (lambda ctx, x: ctx.out(1.5) and None, "takes a shape"),
        (lambda ctx, x: ctx.out() and None, "needs the shape"),
        (lambda ctx, x: ctx.out(x.shape, size=3) and None, "no argument 'size'"),
        (lambda ctx, x: [ctx.out(x.shape, index=0) for _ in "ab"] and None, "made twice"),
        (lambda ctx, x: ctx.colour, "no attribute 'colour'"),
    ],
)
def test_a_wrong_kernel_is_told_what_was_expected(running, function, message):
    with pytest.raises(Exception, match=message):
        running(function)
    assert running(sigmoid).shape == (2, 4)


def test_a_shape_that_the_model_excludes_is_refused(ep):
    serialized = models.chain()
    ep.kernel("Sigmoid")(lambda ctx, x: ctx.out((2, 5)) and None)
    made = session(serialized, ep.provider("host", only=["Sigmoid"]))
    with pytest.raises(Exception, match=r"has the shape \(\?, 4\) in the model, not \(2, 5\)"):
        made.run(None, {"x": np.zeros((2, 4), np.float32)})


def test_an_output_that_is_copied_has_the_name_that_it_has_in_the_model(ep):
    ep.kernel("Relu")(lambda ctx, x: None)
    made = session(models.chain(), ep.provider("host", only=["Relu"]))
    with pytest.raises(Exception, match=r"did not make output 0 \(t0\)"):
        made.run(None, {"x": np.zeros((2, 4), np.float32)})


@pytest.mark.parametrize("view", [lambda a: a, lambda a: a[1:], lambda a: a.T])
@pytest.mark.parametrize("which", ["input", "output"])
def test_an_array_that_is_kept_fails_the_run_and_stays_readable(running, view, which):
    kept = []

    def keep(ctx, x):
        y = ctx.out(x.shape, x.dtype)
        y[...] = 5
        kept.append(view(x if which == "input" else y))

    with pytest.raises(Exception, match=rf"keeps {which} 0 .*\.copy\(\)"):
        running(keep)
    before = kept[0].copy()
    for _ in range(20):
        running(lambda ctx, x: ctx.out(x.shape).fill(1e9))
    np.testing.assert_array_equal(kept[0], before)


def test_numbers_of_inputs_that_no_operator_has_are_refused(ep, x, capfd):
    ep.kernel("Abs", host_inputs=range(100))(sigmoid)
    assert session(model_of("Abs", {"x": x}), ep.provider("host")).get_providers() == [CPU]
    assert "100 inputs, outputs or types of an operator" in capfd.readouterr().out


@pytest.mark.parametrize("ends_well", [True, False])
def test_all_arrays_that_are_kept_stay_readable(running, ends_well):
    kept = []

    def keep(ctx, x):
        y = ctx.out(x.shape, x.dtype)
        y[...] = 5
        kept.extend((x, y))
        if not ends_well:
            raise ValueError("out of luck")

    with pytest.raises(Exception, match="keeps input 0" if ends_well else "out of luck"):
        running(keep)
    before = [array.copy() for array in kept]
    for _ in range(20):
        running(lambda ctx, x: ctx.out(x.shape).fill(1e9))
    np.testing.assert_array_equal(kept, before)


def test_a_reference_cycle_is_not_mistaken_for_a_kept_array(running):
    def cyclic(ctx, x):
        ctx.out(x.shape)[...] = x
        loop = [x]
        loop.append(loop)

    gc.disable()
    try:
        assert running(cyclic).shape == (2, 4)
    finally:
        gc.enable()


def test_a_context_that_is_kept_makes_no_more_outputs(running):
    kept = []

    def keep(ctx, x):
        ctx.out(x.shape)[...] = x
        kept.append(ctx)

    running(keep)
    with pytest.raises(RuntimeError, match="after the kernel had returned"):
        kept[0].out((2, 4))


def test_inputs_cannot_be_changed(running):
    def change(ctx, x):
        x += 1

    with pytest.raises(Exception, match="read-only"):
        running(change)


def test_optional_inputs_and_outputs(ep, x):
    feeds = {"x": x, "scale": np.ones(4, np.float32)}
    node = helper.make_node("LayerNormalization", ["x", "scale"], ["y", "", "d"], name="node")
    seen = []

    @ep.kernel("LayerNormalization", types="float32")
    def norm(ctx, x, scale, bias=None):
        seen.append((bias, ctx.num_outputs))
        ctx.out(x.shape)[...] = x
        seen.append(ctx.out((2, 1)))
        ctx.out((2, 1))[...] = 4

    made = session(model([node], feeds, {"y": np.float32, "d": np.float32}), ep.provider("host"))
    y, d = made.run(None, feeds)
    np.testing.assert_array_equal(y, x)
    assert (d == 4).all()
    assert seen == [(None, 3), None]


def test_inputs_in_host_memory_need_no_copy_back(ep, x):
    feeds = {"x": x, "shape": np.array([4, 2])}
    made = session(model_of("Reshape", feeds), ep.provider("host"))
    assert made.run(None, feeds)[0].shape == (4, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Softpluss",), "no operator 'Softpluss'"),
        (("Softplus", {"types": "int64"}), "never has int64 for T"),
        (("Softplus", {"types": "complex64"}), "complex64 is not a type"),
        (("Softplus", {"types": {"U": "float32"}}), "no type constraint 'U'"),
        (("Softplus", {"inputs": ["T"]}), "leave them out"),
        (("StringConcat",), "never a tensor of numbers"),
        (("SequenceAt",), "never a tensor of numbers"),
        (("Gelu", {"until": 5}), "exists since opset 20"),
        (("Mine", {"domain": DOMAIN, "inputs": ["T", "T"]}), "names 2 types"),
        (("Mine", {"domain": DOMAIN, "outputs": ["U"]}), "not 'U'"),
        (("Mine", {"domain": DOMAIN, "outputs": []}), "not nothing"),
    ],
)
def test_a_wrong_definition_is_refused_at_once(ep, arguments, message):
    op_type, *rest = arguments
    with pytest.raises(KernelError, match=message):
        ep.kernel(op_type, **(rest[0] if rest else {}))(lambda ctx, x: None)


@pytest.mark.parametrize(
    ("op_type", "message"),
    [
        ("Softpluss", "own domain; did you mean 'Softplus'. Otherwise give the domain"),
        ("gelu", "own domain; did you mean 'Gelu'. Otherwise give the domain"),
        ("QuiteAnother", "own domain. Check the spelling, or give the domain"),
    ],
)
def test_an_operator_with_a_typo_is_refused_with_the_near_name(ep, op_type, message):
    with pytest.raises(KernelError, match=message):
        ep.kernel(op_type)(lambda ctx, x: None)


def test_an_unknown_argument_is_refused_with_those_that_there_are(ep):
    message = r"no argument 'opset'\. It takes domain=, types=, .* given by since= and until="
    with pytest.raises(TypeError, match=message):
        ep.kernel("Softplus", opset=99)
    with pytest.raises(TypeError, match=r"no argument 'type'; did you mean 'types'\? It takes"):
        ep.kernel("Softplus", type="float32")


def test_a_decorator_without_operator_is_refused(ep):
    with pytest.raises(KernelError, match=r'@ep.kernel\("Softplus"\) above `def sigmoid\(ctx, x'):
        ep.kernel(sigmoid)


async def awaited(ctx, x): ...


def yielding(ctx, x):
    yield


@pytest.mark.parametrize(
    ("op_type", "function", "message"),
    [
        ("Relu", lambda: None, "takes no context"),
        ("Relu", lambda ctx: None, "takes 0 inputs after ctx, .* has as few: .* inputs are X"),
        ("Relu", lambda ctx, x, y: None, "takes 2 inputs after ctx, .* has as many"),
        ("Relu", awaited, "a coroutine or a generator"),
        ("Relu", yielding, "a coroutine or a generator"),
        ("Relu", 3, "decorates a function, not 3"),
        ("Clip", lambda ctx, x, low, high, more: None, "inputs are input, min, max"),
        ("Mine", lambda: None, "takes no context"),
    ],
)
def test_a_function_that_no_node_can_call_is_refused(ep, op_type, function, message):
    with pytest.raises(KernelError, match=message):
        ep.kernel(op_type, domain=DOMAIN if op_type == "Mine" else "")(function)


@pytest.mark.parametrize(
    ("op_type", "function"),
    [
        ("Clip", lambda ctx, x, low=None, high=None: None),
        ("Clip", lambda ctx, x: None),
        ("Relu", lambda ctx, *inputs: None),
        ("Relu", lambda *arguments: None),
        ("Concat", lambda ctx, first, second, *rest: None),
        ("Relu", np.abs),
    ],
)
def test_functions_that_some_nodes_can_call_are_kernels(ep, op_type, function):
    assert ep.kernel(op_type)(function) is function


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"since": "14"}, "since='14' is not the number of an opset"),
        ({"host_inputs": ["x"]}, r"host_inputs=\['x'\]: it takes numbers of inputs"),
        ({"host_outputs": -1}, "host_outputs=-1: it takes numbers"),
        ({"types": [np.complex64]}, "complex64 is not a type"),
    ],
)
def test_wrong_options_of_a_kernel_are_named(ep, options, message):
    with pytest.raises(KernelError, match=message):
        ep.kernel("Relu", **options)(lambda ctx, x: None)


@pytest.mark.parametrize("kinds", [np.float32, [np.float32], "float32", np.dtype("f4"), ["float"]])
def test_types_are_names_or_dtypes_of_numpy(ep, x, kinds):
    calls = []
    kernel = ep.kernel("Relu", domain="ai.onnx", types=kinds, host_inputs=0)
    kernel(lambda ctx, x: calls.append(ctx.domain) or ctx.out(x.shape).fill(3))
    feeds = {"x": x}
    assert (ep.session(model_of("Relu", feeds)).run(None, feeds)[0] == 3).all()
    assert calls == [""]
    wide = {"x": x.astype(np.float64)}
    ep.session(model_of("Relu", wide, np.float64)).run(None, wide)
    assert calls == [""]  # the user's has no float64


def test_inputs_of_an_operator_without_schema_must_have_names(ep):
    with pytest.raises(KernelError, match="must name its inputs"):
        ep.kernel("Mine", domain=DOMAIN)(lambda ctx, *inputs: None)


def test_a_kernel_runs_the_session_that_it_is_part_of(ep, x):
    inner = on_cpu(models.chain())

    @ep.kernel("Sigmoid")
    def nested(ctx, x):
        ctx.out(x.shape)[...] = inner.run(None, {"x": x.copy()})[0]

    made = session(model_of("Sigmoid", {"x": x}), ep.provider("host"))
    np.testing.assert_allclose(made.run(None, {"x": x})[0], inner.run(None, {"x": x})[0])


def test_many_threads_share_a_session(ep, x):
    made = session(models.chain(), ep.provider("host"))
    expected = made.run(None, {"x": x})[0]
    wrong = []

    def work():
        for _ in range(50):
            if not np.array_equal(made.run(None, {"x": x})[0], expected):
                wrong.append(1)

    run_all(threading.Thread(target=work) for _ in range(32))
    assert not wrong


def test_an_interrupt_in_a_kernel_reaches_the_user(running):
    def interrupted(ctx, x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        running(interrupted)
    assert running(sigmoid).shape == (2, 4)


def test_process_exit_with_sessions_alive_and_after_a_fork():
    import subprocess
    import sys

    code = """
import os, numpy as np
from epprof_nb import ep
from tests.ort import models
x = np.ones((2, 4), np.float32)
session = ep.session(models.chain())
session.run(None, {"x": x})
child = os.fork()
if child == 0:
    session.run(None, {"x": x})
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("ended")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


def test_a_session_is_closed_by_another_thread(ep, x):
    made = [session(models.chain(), ep.provider("host"))]
    made[0].run(None, {"x": x})
    thread = threading.Thread(target=made.clear)
    thread.start()
    thread.join()
    gc.collect()
    session(models.chain(), ep.provider("host")).run(None, {"x": x})
