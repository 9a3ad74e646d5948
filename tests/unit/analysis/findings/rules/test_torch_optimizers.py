"""Findings on optimizers that update tensor by tensor: planted steps, and cured ones."""

import pytest

from tests.helpers.planted import US, info, of_kind
from tests.helpers.tiny import call, kernel, line, op, profile

ADAM = ("lerp", "mul", "addcmul", "sqrt", "div", "add", "addcdiv", "mul_")
MOMENTUM = ("mul", "add", "axpy")
AT_ONCE = ("multi_tensor_apply_kernel<FusedAdam>",)


def training(kernels, tensors, optimizer="AdamW", rounds=6, pitch=16 * US, length=2 * US, **more):
    """Steps that launch a forward pass, and then `kernels` for each tensor, one every `pitch`."""
    ops, work, calls, now, done = [], [], [], 0, 0

    def launch(name, op_id):
        nonlocal now, done
        number = len(calls) + 1
        calls.append(call(now, now + 5 * US, correlation_id=number, op_id=op_id))
        start = max(now + 5 * US, done)
        done = start + length
        work.append(kernel(start, done, op_id, name=name, correlation_id=number, thread_id=1,
                           **more))  # fmt: skip
        now += pitch

    for i in range(rounds):
        first = 10 * i + 1
        begin = now
        for _ in range(10):
            launch("gemm", first)
        ops.append(line(first, 2, begin, now))
        begin = now
        for _ in range(tensors):
            for name in kernels:
                launch(name, first + 2)
        ops.append(line(first + 1, 3, begin, now))
        ops.append(op(first + 2, f"{optimizer}.step", begin, now, first + 1, op_type="optimizer",
                      category="framework", source="torch"))  # fmt: skip
    source = "for x in data:\n    loss(x).backward()\n    opt.step()\n"
    return profile(ops, work, calls, info=info(max(now, done)), sources={"In[1]": source})


def test_adam_tensor_by_tensor():
    prof = training(ADAM, 24)
    (found,) = of_kind(prof, "optimizer")
    assert found.text == (
        "Line 3 (`opt.step()`): `AdamW` updates one tensor after the other: 1,152 launches in 6 "
        "steps for about 24 tensors, 18.4 ms on the host."
    )
    assert "`fused=True` or `foreach=True`" in found.remedy
    # A step with one launch for all of them takes a launch instead of 192.
    at_once = training(AT_ONCE, 1)
    true = prof.info["wall_ns"] - at_once.info["wall_ns"]
    assert found.gain_ns == pytest.approx(true, rel=0.1)
    assert found.low_ns < true
    assert not of_kind(at_once, "optimizer")


@pytest.mark.parametrize(
    ("optimizer", "kernels", "fused"),
    [("SGD", MOMENTUM, True), ("Lion", ("sign", "mul", "add", "lerp"), False),
     ("RMSprop", ADAM[:5], False)],
)  # fmt: skip
def test_other_optimizers(optimizer, kernels, fused):
    prof = training(kernels, 40, optimizer)
    (found,) = of_kind(prof, "optimizer")
    assert ("fused=True" in found.remedy) == fused
    true = prof.info["wall_ns"] - training(AT_ONCE, 2, optimizer).info["wall_ns"]
    assert true / 2 < found.gain_ns < 1.3 * true
    assert not of_kind(training(("foreach_add", "multi_tensor_apply"), 15, optimizer), "optimizer")


def test_work_that_keeps_the_device_busy_saves_memory_traffic_only():
    prof = training(ADAM, 24, length=40 * US)
    (found,) = of_kind(prof, "optimizer")
    assert found.low_ns == 0
    device_ns = 6 * 24 * 8 * 40 * US
    assert found.gain_ns == pytest.approx(device_ns / 2, rel=0.1)
    # A single kernel for each tensor reads and writes as much as one for all of them.
    assert not of_kind(training(("sgd",), 100, "SGD", length=40 * US), "optimizer")


def test_few_tensors_and_replayed_graphs_are_no_finding():
    assert not of_kind(training(ADAM, 3), "optimizer")
    assert not of_kind(training(ADAM, 24, graph_id=4), "optimizer")
