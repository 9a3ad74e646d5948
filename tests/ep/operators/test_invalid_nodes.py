"""Nodes with attributes that ONNX Runtime's CPU provider refuses are refused here, too."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from epprof_nb.ep import unclaimed
from epprof_nb.ep.known_operators import INVALID
from tests.ep.operators.test_contrib_operators import CASES
from tests.ep.operators.test_trees import ensemble
from tests.ep.sessions import CPU, one_node, options, placement, session

pytestmark = pytest.mark.release_independent  # older CPU providers accept some of them

CONTRIB = "com.microsoft"
TOKENS = np.array([[1, 2, 3, 2, 3], [3, 3, 1, 2, 9]], np.int64)
MATRIX = np.ones((3, 3), np.float32)
IMAGE, WEIGHT = np.ones((1, 2, 4, 4), np.float32), np.ones((3, 2, 2, 2), np.float32)
KEYS = np.ones((2, 2, 3, 4), np.float32)
GRAMS = {
    "mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1,
    "ngram_counts": [0, 2], "pool_int64s": [3, 9, 2, 3], "ngram_indexes": [0, 1, 2],
    "weights": [0.5, 2.0, 3.0],
}  # fmt: skip


ROWS, ROW_ATTRIBUTES, _ = CASES["GatherBlockQuantized"][0]
EXPERTS, EXPERT_ATTRIBUTES, _ = CASES["QMoE"][1]
"""With zero points per block, the last but one input."""


def refused_by_both(serialized, entry, reason):
    quiet = options(log_severity_level=4)
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        onnxruntime.InferenceSession(serialized, quiet, providers=[CPU])
    with pytest.raises(Exception, match="ONNXRuntimeError") as refused:
        session(serialized, entry, log_severity_level=4)
    (note,) = refused.value.__notes__
    assert reason in note


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"mode": "X"}, "mode is not one of TF, IDF, TFIDF"),
        ({"min_gram_length": 0}, "min_gram_length, max_gram_length and ngram_counts do not fit"),
        ({"min_gram_length": 2, "max_gram_length": 1}, "max_gram_length and ngram_counts do not"),
        ({"max_gram_length": 3}, "max_gram_length and ngram_counts do not fit"),
        ({"max_skip_count": -1}, "max_skip_count is negative"),
        ({"ngram_counts": [2, 0]}, "ngram_counts does not fit pool_int64s"),
        ({"ngram_counts": [0, 9]}, "ngram_counts does not fit pool_int64s"),
        ({"ngram_counts": [0, 1]}, "ngram_counts does not fit pool_int64s"),
        ({"ngram_counts": [-1, 2]}, "ngram_counts does not fit pool_int64s"),
        ({"pool_int64s": [3, 3, 2, 3]}, "an n-gram repeats"),
        ({"pool_strings": ["a"]}, "it has pool_strings"),
        ({"ngram_indexes": [0, 1]}, "ngram_indexes does not have an entry per n-gram"),
        ({"ngram_indexes": [0, 1, 2, 3]}, "ngram_indexes does not have an entry per n-gram"),
        ({"weights": [0.5]}, "weights does not have an entry per n-gram"),
    ],
)
def test_features_of_sequences(provider, change, reason):
    serialized, _ = one_node("TfIdfVectorizer", (TOKENS,), {**GRAMS, **change})
    refused_by_both(serialized, provider(), reason)


@pytest.mark.parametrize(
    ("op_type", "attributes", "reason"),
    [
        ("FusedGemm", {"activation": "LeakyRelu"}, "the parameters of its activation"),
        ("FusedGemm", {"activation": "HardSigmoid", "activation_alpha": 0.3}, "the parameters of"),
        ("FusedGemm", {"activation": "HardSigmoid", "activation_beta": 0.3}, "the parameters of"),
        ("FusedGemm", {"activation": "Clip", "activation_alpha": 0.0, "activation_beta": 1.0},
         "activation is not one of HardSigmoid, LeakyRelu"),
        ("FusedConv", {"activation": "LeakyRelu"}, "the parameters of its activation"),
        ("FusedConv", {"activation": "LeakyRelu", "activation_params": [0.1, 0.2]}, "parameters"),
        ("FusedConv", {"activation": "HardSigmoid", "activation_params": [0.1]}, "parameters"),
        ("FusedConv", {"activation": "Clip"}, "the parameters of its activation"),
    ],
)  # fmt: skip
def test_activations_without_their_parameters(provider, op_type, attributes, reason):
    inputs = (MATRIX, MATRIX) if op_type == "FusedGemm" else (IMAGE, WEIGHT)
    serialized, _ = one_node(op_type, inputs, attributes, domain=CONTRIB)
    refused_by_both(serialized, provider(), reason)


@pytest.mark.parametrize("op_type", ["MoE", "QMoE"])
def test_tokens_without_an_expert(provider, op_type):
    inputs, attributes, _ = CASES[op_type][0]
    serialized, _ = one_node(op_type, inputs, {**attributes, "k": 0}, domain=CONTRIB)
    refused_by_both(serialized, provider(), "k is not positive")


def test_a_fusion_of_another_activation_is_left_to_the_cpu(provider):
    inputs, attributes, _ = CASES["QMoE"][0]
    serialized, _ = one_node("QMoE", inputs, {**attributes, "swiglu_fusion": 1}, domain=CONTRIB)
    assert placement(session(serialized, provider())) == {"node": CPU}
    (node,) = unclaimed.of_last_session()
    assert node.reason == "swiglu_fusion is set for another activation"


def test_an_attention_with_a_negative_scale(provider):
    serialized, _ = one_node("Attention", (KEYS, KEYS, KEYS), {"scale": -0.5}, opset=23)
    refused_by_both(serialized, provider(), "scale is negative")


INT = np.array([1], np.int64)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes"),
    [
        ("ReduceSum", (MATRIX,), {"keepdims": 2}), ("ArgMax", (MATRIX,), {"keepdims": -1}),
        ("Cast", (MATRIX,), {"to": 10, "saturate": 3}),
        ("ScatterElements", (MATRIX, MATRIX.astype(np.int64), MATRIX), {"reduction": "linear"}),
    ],
)  # fmt: skip
def test_values_that_an_attribute_cannot_have_are_left_to_the_cpu(
    provider, op_type, inputs, attributes
):
    serialized, _ = one_node(op_type, inputs, attributes, opset=19)
    assert placement(session(serialized, provider())) == {"node": CPU}
    (node,) = unclaimed.of_last_session()
    assert node.reason == INVALID


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "domain"),
    [
        ("BiasGelu", (MATRIX, MATRIX[0, :1]), {}, CONTRIB),
        ("FastGelu", (MATRIX, MATRIX[:1]), {}, CONTRIB),
        ("SkipLayerNormalization", (MATRIX[None], MATRIX[0], MATRIX[0]), {}, CONTRIB),
        ("SkipLayerNormalization", (MATRIX[None], MATRIX[None], MATRIX[0, :1]), {}, CONTRIB),
        ("Cast", (MATRIX,), {"to": 10, "saturate": 0}, ""),
        ("ReduceSum", (MATRIX, INT.reshape(1, 1)), {}, ""), ("TopK", (MATRIX, INT[0]), {}, ""),
        ("Unsqueeze", (MATRIX, INT.reshape(1, 1)), {}, ""),
        ("LRN", (MATRIX[None],), {"size": 3}, ""),
        ("AveragePool", (IMAGE[:, :0],), {"kernel_shape": [2, 2]}, ""),
        ("ReverseSequence", (MATRIX, INT), {}, ""), ("Split", (MATRIX[:2].T,), {"axis": 0}, ""),
        ("GatherBlockQuantized", ROWS, {**ROW_ATTRIBUTES, "quantize_axis": 5}, CONTRIB),
        ("QMoE", (*EXPERTS[:-2], EXPERTS[-2][..., None], EXPERTS[-1]), EXPERT_ATTRIBUTES, CONTRIB),
        ("Attention", (KEYS, KEYS, KEYS[:1]), {}, ""),
        ("Attention", (KEYS, KEYS[:1], KEYS), {}, ""),
        ("TfIdfVectorizer", (TOKENS[None],), GRAMS, ""),
        ("TfIdfVectorizer", (TOKENS,), {**GRAMS, "ngram_indexes": [0, -1, 2]}, ""),
    ],
)  # fmt: skip
def test_inputs_that_do_not_fit_end_the_run(provider, op_type, inputs, attributes, domain):
    outputs = 2 if op_type in {"TopK", "Split"} else 1
    opset = {"Split": 13, "Attention": 23}.get(op_type, 21)
    serialized, feeds = one_node(
        op_type, inputs, attributes, outputs=outputs, opset=opset, domain=domain
    )
    loaded = onnx.load_from_string(serialized)
    for value in loaded.graph.input:
        value.type.tensor_type.ClearField("shape")
    for made in ([CPU], [provider(), CPU]):
        with pytest.raises(Exception, match="ONNXRuntimeError"):
            onnxruntime.InferenceSession(
                loaded.SerializeToString(), options(log_severity_level=4), providers=made
            ).run(None, feeds)


def changed(name, number, **options):
    """A tree ensemble with another first entry of an attribute."""
    loaded = onnx.load_from_string(ensemble(**options)[0])
    (attribute,) = (a for a in loaded.graph.node[0].attribute if a.name == name)
    if attribute.HasField("t"):
        values = numpy_helper.to_array(attribute.t).copy()
        values[0] = number
        attribute.t.CopyFrom(numpy_helper.from_array(values, name))
    elif attribute.ints:
        attribute.ints[0] = number
    else:
        attribute.i = number
    return loaded.SerializeToString()


@pytest.mark.parametrize(
    ("name", "number", "reason"),
    [
        ("nodes_featureids", -1, "nodes_featureids has a negative entry"),
        ("nodes_truenodeids", -1, "a branch leads to a node or leaf that does not exist"),
        ("nodes_truenodeids", 999, "a branch leads to a node or leaf that does not exist"),
        ("nodes_truenodeids", 1, "two branches lead to the same node"),
        ("nodes_falsenodeids", 999, "a branch leads to a node or leaf that does not exist"),
        ("leaf_targetids", -1, "leaf_targetids has a target that does not exist"),
        ("leaf_targetids", 2, "leaf_targetids has a target that does not exist"),
        ("n_targets", 1, "leaf_targetids has a target that does not exist"),
        ("tree_roots", 999, "tree_roots has a node that does not exist"),
        ("tree_roots", -1, "tree_roots has a node that does not exist"),
    ],
)
def test_ensembles_of_trees(provider, name, number, reason):
    refused_by_both(changed(name, number), provider(), reason)


def test_an_aggregation_that_does_not_exist(provider):
    refused_by_both(ensemble(aggregate_function=9)[0], provider(), "is not 0, 1, 2 or 3")


@pytest.mark.parametrize(
    ("mode", "message"), [(9, "an entry of 9, above 6"), (6, "there are no membership_values")]
)
def test_conditions_that_do_not_exist_end_the_run(provider, mode, message):
    # They are in a tensor, which is not known when nodes are placed.
    serialized, feeds = changed("nodes_modes", mode), ensemble()[1]
    made = session(serialized, provider(), log_severity_level=4)
    with pytest.raises(Exception, match=message):
        made.run(None, feeds)


@pytest.mark.parametrize("op_type", ["Gemm", "FusedGemm"])
@pytest.mark.parametrize(
    ("shapes", "attributes", "message"),
    [
        (((1, 3, 4), (4, 2)), {}, "are not two matrices"),
        (((1, 3, 4), (1, 4, 2)), {}, "are not two matrices"),
        (((3, 4), (4,)), {}, "are not two matrices"),
        (((4,), (4, 2)), {"transA": 1}, "have no product"),
        (((3, 4), (4, 2), (5,)), {"beta": 0.0}, "does not broadcast to the shape"),
        (((3, 4), (4, 2), (1, 3, 2)), {}, "does not broadcast to the shape"),
    ],
)
def test_matrices_that_do_not_fit_end_the_run(provider, op_type, shapes, attributes, message):
    serialized, feeds = gemm(op_type, shapes, attributes)
    quiet = options(log_severity_level=4)
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        onnxruntime.InferenceSession(serialized, quiet, providers=[CPU]).run(None, feeds)
    with pytest.raises(Exception, match=message):
        session(serialized, provider(), log_severity_level=4).run(None, feeds)


def gemm(op_type, shapes, attributes):
    """Model of a node with inputs of these shapes, which it does not declare."""
    fused = op_type == "FusedGemm"
    inputs = [np.arange(np.prod(s), dtype=np.float32).reshape(s) for s in shapes]
    serialized, feeds = one_node(
        op_type, inputs, {**attributes, **({"activation": "Relu"} if fused else {})},
        domain=CONTRIB if fused else "",
    )  # fmt: skip
    loaded = onnx.load_from_string(serialized)
    for value in loaded.graph.input:
        value.type.tensor_type.ClearField("shape")
    return loaded.SerializeToString(), feeds


@pytest.mark.parametrize("op_type", ["Gemm", "FusedGemm"])
@pytest.mark.parametrize(
    ("shapes", "attributes"), [(((4,), (4, 2)), {}), (((4,), (1, 5)), {"transA": 1})]
)
def test_a_vector_is_taken_for_a_row(provider, op_type, shapes, attributes):
    serialized, feeds = gemm(op_type, shapes, attributes)
    quiet = options(log_severity_level=4)
    (wanted,) = onnxruntime.InferenceSession(serialized, quiet, providers=[CPU]).run(None, feeds)
    (got,) = session(serialized, provider()).run(None, feeds)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted)
