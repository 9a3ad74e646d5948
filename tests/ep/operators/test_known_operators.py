"""Nodes with inputs or attributes that ONNX Runtime added after a kernel was written."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from epprof_nb.ep import known_operators, operator_schemas, unclaimed
from epprof_nb.ep.kernel import REGISTRY
from epprof_nb.ep.kernel_limits import StaticNode, limit_of
from epprof_nb.ep.known_operators import OPERATORS, Known, limits_beyond
from tests.ep.sessions import CPU, OURS, one_node, placement, session

CONTRIB = "com.microsoft"
rng = np.random.default_rng(0)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def test_the_installed_release_has_nothing_that_the_kernels_do_not_know(ep):
    ep.provider("host")
    for (domain, op_type), known in OPERATORS.items():
        assert list(limits_beyond(op_type, domain, known)) == [], (
            "Support what is new, or add a limit for it; then extend known_operators.OPERATORS."
        )


def test_each_kernel_of_an_operator_of_onnx_runtime_has_an_entry(ep):
    ep.provider("host")
    own = {
        (d.domain, d.op_type)
        for d in (kernel.declaration for kernel in REGISTRY._builtin)
        if d.domain != known_operators.CHANNELS_LAST
        and any(
            "onnxruntime" in version.file and version.since_version >= d.first_version
            for version in operator_schemas.versions(d.op_type, d.domain)
        )
    }
    assert len(own) > 10
    assert own == {key for key in OPERATORS if operator_schemas.versions(key[1], key[0])}


def test_defaults_are_those_of_the_schemas():
    compared = 0
    for (domain, op_type), versions in operator_schemas._versions().items():
        for version in versions:
            for name, attribute in version.attributes.items():
                message = bytes(attribute._default_value)
                got = operator_schemas.default_of(attribute)
                if not message:
                    assert got is None
                    continue
                value = onnx.helper.get_attribute_value(onnx.AttributeProto.FromString(message))
                wanted = value.decode() if isinstance(value, bytes) else value
                if not isinstance(wanted, int | float | str):
                    wanted = None
                assert got == wanted, (domain, op_type, name)
                compared += wanted is not None
    assert compared > 300


@pytest.mark.parametrize(
    ("attributes", "inputs", "reason"),
    [
        ({}, 7, None),
        ({"local_window_size": -1}, 7, None),  # the default
        ({"local_window_size": 2}, 7, "local_window_size is set, which the kernel does not know"),
        ({"softcap": 2.0}, 7, "softcap is set, which the kernel does not know"),
        ({}, 11, "it has attention_bias, which the kernel does not know"),
    ],
)
def test_what_a_kernel_does_not_know_is_a_limit_where_a_node_has_it(attributes, inputs, reason):
    # As if the release had added a window, a limit of the scores and a bias.
    whole = OPERATORS[CONTRIB, "GroupQueryAttention"]
    names = set(whole.attributes.split()) - {"local_window_size", "softcap"}
    limits = limits_beyond("GroupQueryAttention", CONTRIB, Known(10, " ".join(names)))
    present = tuple(number < 7 or number == inputs - 1 for number in range(inputs))
    assert limit_of(limits, StaticNode(attributes, present)) == reason


def test_a_session_leaves_such_a_node_to_the_next_provider(ep, monkeypatch):
    entry = ep.provider("host")
    (kernel,) = (k for k in REGISTRY._builtin if k.declaration.op_type == "GroupQueryAttention")
    names = OPERATORS[CONTRIB, "GroupQueryAttention"].attributes.split()
    known = Known(17, " ".join(name for name in names if name != "softcap"))
    beyond = limits_beyond("GroupQueryAttention", CONTRIB, known)
    monkeypatch.setattr(kernel, "limits", {**kernel.limits, **beyond})
    inputs = (floats(1, 2, 32), floats(1, 2, 16), floats(1, 2, 16), None, None,
              np.array([1], np.int32), np.int32(2))  # fmt: skip
    for given, where in (({}, OURS), ({"softcap": 2.0}, CPU)):
        heads = {"num_heads": 4, "kv_num_heads": 2, **given}
        serialized, _ = one_node(
            "GroupQueryAttention", inputs, heads, outputs=3, domain=CONTRIB, fixed=True
        )
        assert placement(session(serialized, entry)) == {"node": where}
    (node,) = unclaimed.of_last_session()
    assert node.reason == "softcap is set, which the kernel does not know"


def test_an_activation_of_channels_last_is_not_known_to_onnx():
    for op_type in ("Conv", "MaxPool", "BatchNormalization"):
        known = known_operators.known(op_type, known_operators.CHANNELS_LAST)
        limits = limits_beyond(op_type, known_operators.CHANNELS_LAST, known)
        assert limit_of(limits, StaticNode({"activation": "Relu"}, (True,)))
        assert limit_of(limits, StaticNode({"pads": (1, 1, 1, 1)}, (True,))) is None
