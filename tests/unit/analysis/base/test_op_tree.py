"""OpTree: subtree sums, and the nearest and outermost ops above an op."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epprof_nb.analysis.base.op_tree import OpTree
from epprof_nb.arrays import groups, ids
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.ids import IdIndex
from tests.helpers.tiny import op, profile


def naive_tree(parents):
    """Ancestors of each row, itself first; a row on a cycle is a root."""
    known = {i: p if 0 <= p < len(parents) else None for i, p in enumerate(parents)}
    for i in list(known):
        seen, at = [], known[i]
        while at is not None and at not in seen:
            seen.append(at)
            at = parents[at] if 0 <= parents[at] < len(parents) else None
        if i in seen:
            known[i] = None
    chains = []
    for i in range(len(parents)):
        chain = [i]
        while known[chain[-1]] is not None:
            chain.append(known[chain[-1]])
        chains.append(chain)
    return chains


@settings(deadline=None)
@given(st.lists(st.integers(-1, 15), max_size=16), st.data())
def test_tree_agrees_with_walking_up_the_parents(parents, data):
    n = len(parents)
    tree = OpTree(profile([op(i, "x", 0, 1, p) for i, p in enumerate(parents)]).tables["ops"])
    chains = naive_tree(parents)
    values = data.draw(st.lists(st.integers(0, 99), min_size=n, max_size=n))
    sums = [sum(values[j] for j in range(n) if i in chains[j]) for i in range(n)]
    assert tree.subtree_sum(np.array(values, np.int64)).tolist() == sums
    marked = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    nearest = [next((j for j in chain if marked[j]), -1) for chain in chains]
    assert tree.nearest_ancestor(np.array(marked, bool)).tolist() == nearest
    groups = data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n))
    outer = [
        groups[i] >= 0 and all(groups[j] != groups[i] for j in chain[1:])
        for i, chain in enumerate(chains)
    ]
    assert tree.is_outermost(np.array(groups, np.int64)).tolist() == outer


@pytest.mark.parametrize("size", [3, 1000])
@settings(deadline=None)
@given(st.lists(st.integers(0, 9), max_size=30), st.integers(0, 5), st.integers(-1, 29))
def test_ops_in_the_order_of_their_starts_keep_it_in_the_tree(size, closed, first_id, wrong):
    parents, stack = [], []
    for row, levels in enumerate(closed):
        # Number of ops that close before the next one opens.
        del stack[max(len(stack) - max(levels - 3, 0), 0) :]
        parents.append(stack[-1] if stack else -1)
        stack.append(row)
    if 0 <= wrong < len(parents):
        parents[wrong] = wrong // 2 - 1  # usually no longer in preorder
    ops = [op(i + first_id, "x", 0, 1, p + first_id if p >= 0 else -1)
           for i, p in enumerate(parents)]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "chunks", partial(chunks, size=size))
        patch.setattr(ids, "chunks", partial(chunks, size=size))
        tree = OpTree(profile(ops).tables["ops"])
    chains = naive_tree(parents)
    assert tree.depth.tolist() == [len(chain) - 1 for chain in chains]
    below = [sum(i in chain for chain in chains) for i in range(len(parents))]
    assert (tree.preorder_end - tree.preorder_begin).tolist() == below
    for row, chain in enumerate(chains):
        for above in chain:
            assert tree.preorder_begin[above] <= tree.preorder_begin[row] < tree.preorder_end[above]
    if wrong < 0:
        assert tree.preorder_begin.tolist() == list(range(len(parents)))


def test_a_tree_as_deep_as_it_is_large_is_summed_at_once():
    n = 50_000
    ops = profile([op(i, "x", 0, 1, i - 1) for i in range(n)]).tables["ops"]
    assert OpTree(ops).subtree_sum(np.ones(n, np.int64)).tolist() == list(range(n, 0, -1))


@settings(deadline=None)
@given(
    st.lists(st.integers(-3, 20) | st.integers(-(2**63), 2**63 - 1), max_size=20),
    st.lists(st.integers(-3, 20) | st.integers(-(2**63), 2**63 - 1), max_size=20),
)
def test_index_finds_the_first_row_of_an_id(ids, wanted):
    found = IdIndex(np.array(ids, np.int64)).rows(np.array(wanted + ids, np.int64))
    assert found.tolist() == [ids.index(i) if i in ids and i != -1 else -1 for i in wanted + ids]
