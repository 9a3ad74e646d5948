"""Ensembles of decision trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.ep.kernel import Array, ArrayModule, Attributes, Context, builtin
from epprof_nb.ep.kernels.precision import at_least_float32

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.ep.limits import Limits, StaticNode

_MEMBER = 6
_AVERAGE, _SUM, _MIN, _MAX = range(4)


def _outside(*names: str, size: Callable[[Attributes], int]) -> Callable[[StaticNode], bool]:
    """Return whether one of some attributes has an entry that is no index below `size`."""

    def holds(node: StaticNode) -> bool:
        limit = size(node.attrs)
        return any(not 0 <= number < limit for name in names for number in node.attrs[name])

    return holds


def _leads_nowhere(node: StaticNode) -> bool:
    """Whether a branch leads to a node or a leaf that does not exist."""
    nodes, leaves = len(node.attrs["nodes_featureids"]), len(node.attrs["leaf_targetids"])
    return any(
        not 0 <= number < (leaves if is_leaf else nodes)
        for side in ("true", "false")
        for number, is_leaf in zip(
            node.attrs[f"nodes_{side}nodeids"], node.attrs[f"nodes_{side}leafs"], strict=True
        )
    )


_LIMITS: Limits = {
    # ONNX and ONNX Runtime number the transformations differently.
    "post_transform is set": lambda node: bool(node.attrs.get("post_transform")),
    "aggregate_function is not 0, 1, 2 or 3": lambda node: (
        node.attrs.get("aggregate_function", _SUM) not in range(4)
    ),
    "nodes_featureids has a negative entry": lambda node: (
        min(node.attrs["nodes_featureids"], default=0) < 0
    ),
    "tree_roots has a node that does not exist": _outside(
        "tree_roots", size=lambda attrs: len(attrs["nodes_featureids"])
    ),
    "leaf_targetids has a target that does not exist": _outside(
        "leaf_targetids", size=lambda attrs: attrs["n_targets"]
    ),
    "a branch leads to a node or leaf that does not exist": _leads_nowhere,
}


@builtin("TreeEnsemble", domain="ai.onnx.ml", since=5, limits=_LIMITS)
def tree_ensemble(ctx: Context, x: Array) -> None:
    """Sum, average, minimum or maximum of the leaves that each row reaches in the trees."""
    xp, attrs = ctx.xp, ctx.attrs
    if attrs["nodes_modes"].size and attrs["nodes_modes"].max() > _MEMBER:
        raise ValueError(
            f"nodes_modes has an entry of {attrs['nodes_modes'].max()}, above {_MEMBER}"
        )
    how = attrs.get("aggregate_function", _SUM)
    targets = attrs["n_targets"]
    leaf_targets = xp.asarray(np.array(attrs["leaf_targetids"], np.int64))
    weights = at_least_float32(xp.asarray(attrs["leaf_weights"]))
    start = {_MIN: np.inf, _MAX: -np.inf}.get(how, 0)
    y = xp.full((x.shape[0], targets), start, weights.dtype)
    is_reached = xp.zeros(y.shape, bool)
    rows = xp.arange(x.shape[0])
    for root in attrs["tree_roots"]:
        leaves = _leaves(xp, attrs, x, root)
        places = rows, leaf_targets[leaves]
        is_reached[places] = True
        if how == _MIN:
            y[places] = xp.minimum(y[places], weights[leaves])
        elif how == _MAX:
            y[places] = xp.maximum(y[places], weights[leaves])
        else:
            y[places] += weights[leaves]
    if how == _AVERAGE:
        y /= len(attrs["tree_roots"])
    y[~is_reached] = 0
    ctx.out(y.shape)[...] = y


def _leaves(xp: ArrayModule, attrs: Attributes, x: Array, root: int) -> Array:
    """Return the leaf of a tree that each row reaches."""
    branches, to_leaf = (
        [xp.asarray(np.array(attrs[f"nodes_{side}{what}"], np.int64)) for side in ("false", "true")]
        for what in ("nodeids", "leafs")
    )
    features = xp.asarray(np.array(attrs["nodes_featureids"], np.int64))
    tracks = attrs.get("nodes_missing_value_tracks_true") or (0,) * features.size
    tracks = xp.asarray(np.array(tracks, bool))
    at = xp.full(x.shape[0], root, np.int64)
    moving = xp.arange(x.shape[0])
    for _ in range(features.size):
        if not moving.size:
            return at
        nodes = at[moving]
        values = x[moving, features[nodes]]
        taken = _holds(xp, attrs, nodes, values) | (xp.isnan(values) & tracks[nodes])
        at[moving] = xp.where(taken, branches[1][nodes], branches[0][nodes])
        moving = moving[xp.where(taken, to_leaf[1][nodes], to_leaf[0][nodes]) == 0]
    if moving.size:
        raise ValueError(f"the tree with the root {root} has a cycle")
    return at


def _holds(xp: ArrayModule, attrs: Attributes, nodes: Array, values: Array) -> Array:
    """Return whether the condition of each node holds for its value."""
    modes = xp.asarray(attrs["nodes_modes"])[nodes]
    splits = xp.asarray(attrs["nodes_splits"])[nodes]
    taken = xp.zeros(values.shape, bool)
    compare = (xp.less_equal, xp.less, xp.greater_equal, xp.greater, xp.equal, xp.not_equal)
    for mode, function in enumerate(compare):
        chosen = modes == mode
        taken[chosen] = function(values[chosen], splits[chosen])
    for node, members in _members(attrs).items():
        chosen = nodes == node
        taken[chosen] = xp.isin(values[chosen], xp.asarray(members))
    return taken


def _members(attrs: Attributes) -> dict[int, Array]:
    """Return the members of each node that tests for membership; sets end with a NaN."""
    nodes = np.flatnonzero(attrs["nodes_modes"] == _MEMBER).tolist()
    if not nodes:
        return {}
    values = attrs.get("membership_values")
    if values is None:
        raise ValueError("a node tests for membership, and there are no membership_values")
    ends = np.flatnonzero(np.isnan(values)).tolist()
    starts = [0, *(end + 1 for end in ends)]
    return {n: values[a:b] for n, a, b in zip(nodes, starts, ends, strict=False)}
