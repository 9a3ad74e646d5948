"""Ensembles of decision trees against ONNX Runtime's CPU provider."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from tests.ep.sessions import CPU, OURS, on_cpu, options, placement, session

LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(7)
ML = "ai.onnx.ml"


def ensemble(*, trees=3, depth=3, targets=2, kind=np.float32, modes=(LEQ,), seed=0, **attributes):
    """Serialized model of complete trees with random conditions, and inputs that reach them."""
    rng = np.random.default_rng(seed)
    each = 2**depth - 1
    nodes = {"features": [], "true": [], "false": [], "leafs": [], "roots": []}
    for tree in range(trees):
        nodes["roots"].append(tree * each)
        for node in range(each):
            last = node >= each // 2
            base = tree * (each + 1) - each if last else tree * each
            nodes["features"].append(int(rng.integers(4)))
            nodes["false"].append(base + 2 * node + 1)
            nodes["true"].append(base + 2 * node + 2)
            nodes["leafs"].append(int(last))
    count = trees * each
    chosen = rng.choice(modes, count).astype(np.uint8)
    sets = [np.r_[rng.integers(-2, 3, 2), np.nan] for mode in chosen if mode == MEMBER]
    leaves = trees * (each + 1)
    tensors = {
        "nodes_splits": rng.integers(-2, 3, count).astype(kind),
        "nodes_modes": chosen,
        "leaf_weights": rng.standard_normal(leaves).astype(kind),
        **({"membership_values": np.concatenate(sets).astype(kind)} if sets else {}),
    }
    made = helper.make_node(
        "TreeEnsemble", ["x"], ["y"], name="node", domain=ML, n_targets=targets,
        tree_roots=nodes["roots"], nodes_featureids=nodes["features"],
        nodes_truenodeids=nodes["true"], nodes_falsenodeids=nodes["false"],
        nodes_trueleafs=nodes["leafs"], nodes_falseleafs=nodes["leafs"],
        leaf_targetids=rng.integers(0, targets, leaves).tolist(),
        **{name: numpy_helper.from_array(value, name) for name, value in tensors.items()},
        **attributes,
    )  # fmt: skip
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    graph = helper.make_graph(
        [made], "graph", [helper.make_tensor_value_info("x", element, [None, 4])],
        [helper.make_tensor_value_info("y", element, None)],
    )  # fmt: skip
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(ML, 5)]
    )
    model.ir_version = 9
    return model.SerializeToString(), {"x": rng.integers(-3, 4, (50, 4)).astype(kind)}


def check(provider, model, feeds):
    made = session(model, provider())
    assert placement(made) == {"node": OURS}
    (got,), (wanted,) = made.run(None, feeds), on_cpu(model).run(None, feeds)
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("modes", [(LEQ,), (LT,), (GTE,), (GT,), (EQ,), (NEQ,), (LEQ, GT, EQ)])
def test_each_row_reaches_the_leaves_that_its_values_lead_to(provider, kind, modes):
    for seed in range(3):
        check(provider, *ensemble(kind=kind, modes=modes, seed=seed))


def test_a_node_may_test_for_membership(provider):
    check(provider, *ensemble(modes=(MEMBER,), trees=1, depth=1, targets=1))


@pytest.mark.parametrize("how", range(4))
def test_leaves_are_aggregated(provider, how):
    check(provider, *ensemble(trees=4, targets=3, aggregate_function=how))


def test_a_missing_value_takes_the_branch_that_the_node_names(provider):
    model, feeds = ensemble(trees=1, nodes_missing_value_tracks_true=[1, 0, 1, 0, 1, 0, 1])
    feeds["x"][::3, 1] = np.nan
    check(provider, model, feeds)


def test_transformations_are_left_to_the_cpu_provider(provider):
    model, _ = ensemble(post_transform=1)
    assert placement(session(model, provider())) == {"node": CPU}


def test_a_cycle_is_an_error(provider):
    loaded = onnx.load_from_string(ensemble(trees=1)[0])
    for attribute in loaded.graph.node[0].attribute:
        if attribute.name == "nodes_truenodeids":
            attribute.ints[0] = 0
    quiet = options(log_severity_level=4)
    made = onnxruntime.InferenceSession(loaded.SerializeToString(), quiet, providers=[provider()])
    with pytest.raises(Exception, match=r"one of the trees with the roots \[0\] has a cycle"):
        made.run(None, {"x": np.zeros((2, 4), np.float32)})


@pytest.mark.parametrize("how", range(4))
def test_infinite_weights_are_kept_and_targets_without_a_leaf_are_0(provider, how):
    model, feeds = ensemble(trees=1, depth=1, targets=3, aggregate_function=how)
    made = onnx.load_from_string(model)
    for attribute in made.graph.node[0].attribute:
        if attribute.name == "leaf_weights":
            weights = np.array([np.inf, -np.inf], np.float32)
            attribute.t.CopyFrom(numpy_helper.from_array(weights, "leaf_weights"))
    check(provider, made.SerializeToString(), feeds)
