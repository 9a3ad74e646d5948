"""A GPT-2-like decoder whose keys and values of earlier tokens are inputs and outputs."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

VOCABULARY = 256


def decoder(layers=2, heads=4, width=64):
    """The model, serialised. Each run takes one token and the past of all layers.

    Inputs: ``token`` (int64, 1 x 1), and for each layer ``past_k0`` and ``past_v0`` (float,
    1 x heads x past x width / heads). Outputs: ``logits`` and each layer's ``k0`` and ``v0``, one
    token longer.
    """
    rng = np.random.default_rng(0)
    nodes, weights, inputs, outputs = [], [], [], []
    size = width // heads

    def weight(name, *shape):
        values = (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
        weights.append(numpy_helper.from_array(values, name))
        return name

    def constant(name, values, kind=np.int64):
        weights.append(numpy_helper.from_array(np.array(values, kind), name))
        return name

    def node(kind, given, output, **attributes):
        nodes.append(helper.make_node(kind, given, [output], name=output, **attributes))
        return output

    def linear(x, name, columns, rows=width):
        product = node("MatMul", [x, weight(f"{name}_w", rows, columns)], f"{name}_matmul")
        return node("Add", [product, weight(f"{name}_b", columns)], name)

    def norm(x, name):
        given = [x, weight(f"{name}_scale", width), weight(f"{name}_bias", width)]
        return node("LayerNormalization", given, name, axis=-1)

    split = constant("split", [width] * 3)
    by_head, joined = constant("by_head", [1, 1, heads, size]), constant("joined", [1, 1, width])
    scale, half = constant("scale", size**-0.5, np.float32), constant("half", 0.5, np.float32)
    root, one = constant("root", 2**-0.5, np.float32), constant("one", 1, np.float32)
    x = node("Gather", [weight("embedding", VOCABULARY, width), "token"], "embedded")
    for i in range(layers):
        qkv = linear(norm(x, f"norm{i}"), f"qkv{i}", 3 * width)
        parts = [f"{part}{i}_flat" for part in "qkv"]
        nodes.append(helper.make_node("Split", [qkv, split], parts, name=f"split{i}", axis=-1))
        made = {}
        for part, flat in zip("qkv", parts, strict=True):
            shaped = node("Reshape", [flat, by_head], f"{part}{i}_heads")
            made[part] = node("Transpose", [shaped], f"{part}{i}_new", perm=[0, 2, 1, 3])
        for part in "kv":
            made[part] = node("Concat", [f"past_{part}{i}", made[part]], f"{part}{i}", axis=2)
            shapes = (f"past_{part}{i}", "past"), (made[part], "total")
            given, taken = (
                helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, heads, length, size])
                for name, length in shapes
            )
            inputs.append(given)
            outputs.append(taken)
        keys = node("Transpose", [made["k"]], f"keys{i}", perm=[0, 1, 3, 2])
        scores = node("MatMul", [made["q"], keys], f"scores{i}")
        shares = node(
            "Softmax", [node("Mul", [scores, scale], f"scaled{i}")], f"shares{i}", axis=-1
        )
        mixed = node("MatMul", [shares, made["v"]], f"mixed{i}")
        mixed = node("Transpose", [mixed], f"mixed{i}_new", perm=[0, 2, 1, 3])
        mixed = node("Reshape", [mixed, joined], f"mixed{i}_flat")
        x = node("Add", [x, linear(mixed, f"projected{i}", width)], f"attended{i}")
        wide = linear(norm(x, f"norm_mlp{i}"), f"up{i}", 4 * width)
        bend = node("Erf", [node("Mul", [wide, root], f"erf_in{i}")], f"erf{i}")
        bend = node("Add", [bend, one], f"gelu_in{i}")
        bent = node("Mul", [node("Mul", [wide, half], f"half{i}"), bend], f"gelu{i}")
        x = node("Add", [x, linear(bent, f"down{i}", width, 4 * width)], f"layer{i}")
    linear(norm(x, "norm_last"), "logits", VOCABULARY)
    token = helper.make_tensor_value_info("token", TensorProto.INT64, [1, 1])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1, VOCABULARY])
    graph = helper.make_graph(nodes, "decoder", [token, *inputs], [logits, *outputs], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    return model.SerializeToString()


def first_feed(session):
    """Inputs of the first step: a token and an empty past."""
    feed = {"token": np.array([[1]], np.int64)}
    for given in session.get_inputs()[1:]:
        _, heads, _, size = given.shape
        feed[given.name] = np.zeros((1, heads, 0, size), np.float32)
    return feed


def generate(session, steps, feed=None):
    """Run the session `steps` times; return the tokens and the inputs of the next step."""
    feed = feed or first_feed(session)
    tokens = []
    names = [output.name for output in session.get_outputs()]
    for _ in range(steps):
        logits, *past = session.run(names, feed)
        tokens.append(int(logits.argmax()))
        feed = {"token": np.array([[tokens[-1]]], np.int64)}
        feed |= {f"past_{name}": value for name, value in zip(names[1:], past, strict=True)}
    return tokens, feed


def generate_bound(session, steps, device="cpu"):
    """Run the session `steps` times with inputs and outputs on a device; return the tokens."""
    from onnxruntime import OrtValue

    given = {
        name: OrtValue.ortvalue_from_numpy(value, device, 0)
        for name, value in first_feed(session).items()
    }
    names = [output.name for output in session.get_outputs()]
    tokens = []
    for _ in range(steps):
        binding = session.io_binding()
        for name, value in given.items():
            binding.bind_ortvalue_input(name, value)
        for name in names:
            binding.bind_output(name, device)
        session.run_with_iobinding(binding)
        logits, *past = binding.get_outputs()
        tokens.append(int(logits.numpy().argmax()))
        token = OrtValue.ortvalue_from_numpy(np.array([[tokens[-1]]], np.int64), device, 0)
        given = {"token": token}
        given |= {f"past_{name}": value for name, value in zip(names[1:], past, strict=True)}
    return tokens
