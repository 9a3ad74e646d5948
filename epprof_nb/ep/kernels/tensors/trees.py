"""Ensembles of decision trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.ep.kernel import Array, ArrayModule, Attributes, Context, builtin
from epprof_nb.ep.kernels.cuda.constants import constant
from epprof_nb.ep.kernels.shared.precision import at_least_float32

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.ep.kernel_limits import Limits, StaticNode

_MEMBER = 6
_COMPARISONS = ("less_equal", "less", "greater_equal", "greater", "equal", "not_equal")
"""Comparisons by mode."""
_AVERAGE, _SUM, _MIN, _MAX = range(4)


def _outside(*names: str, size: Callable[[Attributes], int]) -> Callable[[StaticNode], bool]:
    """Return whether one of the attributes has an entry that is not an index below `size`."""

    def holds(node: StaticNode) -> bool:
        limit = size(node.attrs)
        return any(not 0 <= number < limit for name in names for number in node.attrs[name])

    return holds


def _branches(node: StaticNode) -> list[tuple[int, int]]:
    """Return the node or leaf after each branch, and whether it is a leaf."""
    return [
        branch
        for side in ("true", "false")
        for branch in zip(
            node.attrs[f"nodes_{side}nodeids"], node.attrs[f"nodes_{side}leafs"], strict=True
        )
    ]


def _leads_nowhere(node: StaticNode) -> bool:
    """Whether a branch leads to a node or a leaf that does not exist."""
    nodes, leaves = len(node.attrs["nodes_featureids"]), len(node.attrs["leaf_targetids"])
    return any(
        not 0 <= number < (leaves if is_leaf else nodes) for number, is_leaf in _branches(node)
    )


def _joins(node: StaticNode) -> bool:
    """Whether two branches lead to the same node, so that the graph is not a tree."""
    inner = [number for number, is_leaf in _branches(node) if not is_leaf]
    return len(set(inner)) < len(inner)


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
    "two branches lead to the same node": _joins,
}


@builtin("TreeEnsemble", domain="ai.onnx.ml", since=5, limits=_LIMITS)
def tree_ensemble(ctx: Context, x: Array) -> None:
    """Sum, average, minimum or maximum of the leaves that each row reaches in the trees."""
    xp, attrs = ctx.xp, ctx.attrs
    if x.ndim not in (1, 2):
        raise ValueError(f"X has {x.ndim} dimensions, not 1 or 2")
    x = x[None] if x.ndim == 1 else x
    highest = attrs["nodes_modes"].max(initial=0)
    if highest > _MEMBER:
        raise ValueError(f"nodes_modes has an entry of {highest}, above {_MEMBER}")
    feature = max(attrs["nodes_featureids"], default=-1)
    if feature >= x.shape[1]:
        raise ValueError(f"nodes_featureids has an entry of {feature}, and x {x.shape[1]} columns")
    how = attrs.get("aggregate_function", _SUM)
    targets = attrs["n_targets"]
    leaf_targets = constant(xp, attrs["leaf_targetids"], np.int64)
    weights = at_least_float32(constant(xp, attrs["leaf_weights"]))
    start = {_MIN: np.inf, _MAX: -np.inf}.get(how, 0)
    y = xp.full((x.shape[0], targets), start, weights.dtype)
    is_reached = xp.zeros(y.shape, bool)
    rows = xp.arange(x.shape[0])
    leaves = _leaves(xp, attrs, x)
    for tree in range(leaves.shape[1]):
        leaf = leaves[:, tree]
        places = rows, leaf_targets[leaf]
        is_reached[places] = True
        if how == _MIN:
            y[places] = xp.minimum(y[places], weights[leaf])
        elif how == _MAX:
            y[places] = xp.maximum(y[places], weights[leaf])
        else:
            y[places] += weights[leaf]
    if how == _AVERAGE:
        y /= max(leaves.shape[1], 1)
    ctx.out(y.shape)[...] = xp.where(is_reached, y, y.dtype.type(0))


def _leaves(xp: ArrayModule, attrs: Attributes, x: Array) -> Array:
    """Return the leaf that each row reaches in each tree, as an array (rows, trees).

    Leaves are numbered after the nodes and lead to themselves, so every row takes the same number
    of steps, and nothing waits for a device.
    """
    count, roots = len(attrs["nodes_featureids"]), attrs["tree_roots"]
    no, yes = (
        _next(attrs[f"nodes_{side}nodeids"], attrs[f"nodes_{side}leafs"], count, attrs)
        for side in ("false", "true")
    )
    steps = _depth(no, yes, count, roots)
    rest = no.size - count
    features = constant(xp, np.pad(np.array(attrs["nodes_featureids"], np.int64), (0, rest)))
    modes = constant(xp, np.pad(attrs["nodes_modes"], (0, rest)))
    splits = constant(xp, np.pad(attrs["nodes_splits"], (0, rest)))
    tracks = attrs.get("nodes_missing_value_tracks_true") or (0,) * count
    tracks = constant(xp, np.pad(np.array(tracks, bool), (0, rest)))
    branches = constant(xp, no), constant(xp, yes)
    used = np.unique(attrs["nodes_modes"]).tolist()
    at = xp.zeros((x.shape[0], len(roots)), np.int64) + constant(xp, roots, np.int64)
    rows = xp.arange(x.shape[0])[:, None]
    for _ in range(steps):
        values, limits, mode = x[rows, features[at]], splits[at], modes[at]
        taken = xp.isnan(values) & tracks[at]
        for number in used:
            if number != _MEMBER:
                taken |= (mode == number) & getattr(xp, _COMPARISONS[number])(values, limits)
        for node, members in _members(attrs).items():
            taken |= (at == node) & xp.isin(values, constant(xp, members))
        at = xp.where(taken, branches[1][at], branches[0][at])
    return at - count


def _next(targets: tuple[int, ...], leafs: tuple[int, ...], count: int, attrs: Attributes) -> Array:
    """Return the node or leaf after each node and leaf on one side of the branches."""
    after = np.array(targets, np.int64) + np.where(leafs, count, 0)
    leaves = np.arange(len(attrs["leaf_targetids"])) + count
    return np.concatenate([after.astype(np.int64), leaves])


def _depth(no: Array, yes: Array, count: int, roots: tuple[int, ...]) -> int:
    """Return the number of steps after which each row is at a leaf on any path."""
    reached = np.unique(np.array(roots, np.int64))
    for steps in range(count + 1):
        reached = reached[reached < count]
        if not reached.size:
            return steps
        reached = np.unique(np.concatenate([no[reached], yes[reached]]))
    raise ValueError(f"one of the trees with the roots {list(roots)} has a cycle")


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
