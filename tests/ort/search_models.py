"""GreedySearch and BeamSearch with the smallest decoder that they accept."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from tests.ort.models import FLOAT, INT64, value

INT32 = TensorProto.INT32
WORDS, WIDTH, HEADS = 8, 4, 2
DECODER = ("embed", "embed_at", "embed_add", "head", "split", "swap", "one", "both", "keep")


def searching(kind, length=6):
    """A search of `kind` over `length` tokens, with a trivial model that has GPT-2's interface."""
    size = WIDTH // HEADS
    rng = np.random.default_rng(0)

    def weight(name, *shape):
        return helper.make_tensor(name, FLOAT, shape, rng.standard_normal(shape).ravel())

    def node(op_type, name, *inputs, gives=None, **attributes):
        return helper.make_node(op_type, inputs, [gives or name], name=name, **attributes)

    decoder = helper.make_graph(
        [
            node("Gather", "embed", "words", "input_ids"),
            node("Gather", "embed_at", "places", "position_ids"),
            node("Add", "embed_add", "embed", "embed_at"),
            node("MatMul", "head", "embed_add", "unembed", gives="logits"),
            node("Reshape", "split", "embed_add", "by_head"),
            node("Transpose", "swap", "split", perm=[0, 2, 1, 3]),
            node("Unsqueeze", "one", "swap", "first"),
            node("Concat", "both", "one", "one", axis=0),
            node("Concat", "keep", "past_0", "both", gives="present_0", axis=3),
        ],
        "decoder",
        [
            value("input_ids", ("b", "s"), INT32),
            value("position_ids", ("b", "s"), INT32),
            value("attention_mask", ("b", "t"), INT32),
            value("past_0", (2, "b", HEADS, "p", size)),
        ],
        [value("logits", ("b", "s", WORDS)), value("present_0", (2, "b", HEADS, "t", size))],
        [
            weight("words", WORDS, WIDTH),
            weight("places", 32, WIDTH),
            weight("unembed", WIDTH, WORDS),
            helper.make_tensor("by_head", INT64, [4], [0, 0, HEADS, size]),
            helper.make_tensor("first", INT64, [1], [0]),
        ],
    )
    settings = {"max_length": length, "min_length": length}
    if kind == "BeamSearch":
        settings |= {"num_beams": 2, "num_return_sequences": 1, "length_penalty": 1.0}
    settings |= {"repetition_penalty": 1.0}
    search = helper.make_node(
        kind, ["input_ids", *settings], ["sequences"], name="search", domain="com.microsoft",
        decoder=decoder, model_type=0, eos_token_id=WORDS - 1, pad_token_id=WORDS - 1,
    )  # fmt: skip
    graph = helper.make_graph(
        [search], "searching",
        [value("input_ids", ("b", "s"), INT32)],
        [value("sequences", None, INT32)],
        [
            helper.make_tensor(name, FLOAT if isinstance(set_to, float) else INT32, [1], [set_to])
            for name, set_to in settings.items()
        ],
    )  # fmt: skip
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=domains)
    model.ir_version = 9
    return model.SerializeToString()
