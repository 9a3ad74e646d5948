"""Matching of the ops of two sides of a comparison, by path.

A path is matched by the names and types of its ops, from the outermost op down. Names of cells and
line numbers do not count: the code may have moved. `epprof_nb.analysis.compare.match_siblings` has
the rules by which ops under the same parent are matched; an op without a counterpart is added or
removed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from epprof_nb.analysis.base.op_paths import SESSION, OpPaths, op_steps
from epprof_nb.analysis.compare.match_siblings import Matching
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.compare.match_siblings import Label
    from epprof_nb.arrays.types import IntArray

Key: TypeAlias = tuple[str | None, str | None, int]
"""Name (None for a cell), type and number among equal siblings of an op."""


class Side:
    """Paths of the ops of one side, numbered across its recordings; path 0 is the session.

    Attributes
    ----------
    children
        Paths below each path by key, in order of first appearance.
    names, types
        Name and type of each path.
    captured
        Path of an op that captured nodes of a replayed graph, below the path of the op that
        replayed it, to the path under which the capturing op ran.
    """

    def __init__(self) -> None:
        self.children: list[dict[Key, int]] = [{}]
        self.names: list[str | None] = [None]
        self.types: list[str | None] = [None]
        self.captured: dict[int, int] = {}
        self._chains: list[tuple[int, ...]] = [()]

    def add(self, index: ProfileIndex) -> IntArray:
        """Add the paths of a recording and return the path of each of its ops.

        Returns
        -------
        paths
            int64 array, shape ``(ops + 1,)``; the last element is the session, for activities
            without an op.
        """
        ops = index.profile.tables["ops"]
        tree = OpPaths(op_steps(ops, index.tree))
        of_node = np.zeros(len(tree.parent), np.int64)
        nodes = slice(SESSION + 1, tree.no_op)
        rows = tree.row[nodes]
        names, types = (ops.names(name).take(rows).to_list() for name in ("name", "op_type"))
        equal: Counter[tuple[int, str | None, str | None]] = Counter()
        for node, (above, name, op_type) in enumerate(
            zip(tree.parent[nodes].tolist(), names, types, strict=True), SESSION + 1
        ):
            parent = int(of_node[above])
            label = None if op_type == "cell" else name
            key = (label, op_type, equal[parent, label, op_type])
            equal[parent, label, op_type] += 1
            of_node[node] = self._path(parent, key, name, op_type)
        return np.append(of_node[tree.of_op], SESSION)

    def owners(self, index: ProfileIndex, paths: IntArray) -> IntArray:
        """Return the path that each activity belongs to, as int64 array.

        An activity belongs to the path of the op that launched it. In the replay of a graph, it
        belongs to the path of the op that captured the node, below the op that replayed the graph:
        the replays of one op contain the work of many.

        Parameters
        ----------
        index
            A recording that was added.
        paths
            Result of `add`.
        """
        owners = paths[index.activity_op]
        captured = index.tree.rows(index.profile.tables["activities"]["capture_op_id"])
        rows = np.flatnonzero((captured != MISSING) & (captured != index.activity_op))
        groups, first = group_codes(owners[rows], paths[captured[rows]])
        below = [self._captured(int(owners[row]), int(paths[captured[row]])) for row in rows[first]]
        owners[rows] = np.array(below, np.int64)[groups]
        return owners

    def _captured(self, replay: int, capture: int) -> int:
        """Return the path of a capturing op below the op that replayed the graph."""
        path = replay
        for step in (*self._chains[capture], capture):
            if self.types[step] != "cell":
                key = (self.names[step], self.types[step], 0)
                path = self._path(path, key, *key[:2])
                self.captured.setdefault(path, step)
        return path

    def above(self, path: int) -> tuple[int, ...]:
        """Return the paths above one, from the outermost down, without the session."""
        return self._chains[path]

    def depths_and_parents(self) -> tuple[IntArray, IntArray]:
        """Return the depth of each path and the path above it; 0 and itself for the session."""
        depth = np.array([len(chain) + 1 for chain in self._chains], np.int64)
        depth[SESSION] = 0
        parent = np.array([chain[-1] if chain else SESSION for chain in self._chains], np.int64)
        return depth, parent

    def _path(self, parent: int, key: Key, name: str | None, op_type: str | None) -> int:
        path = self.children[parent].setdefault(key, len(self.children))
        if path == len(self.children):
            self.children.append({})
            self.names.append(name)
            self.types.append(op_type)
            self._chains.append((*self._chains[parent], parent) if parent else ())
        return path


@dataclass(frozen=True, slots=True)
class Pair:
    """A path of the comparison, with its path on each side; None on a side that lacks it.

    ``parent`` is the pair above, `SESSION` for the outermost ones.
    """

    parent: int
    old: int | None
    new: int | None
    is_renamed: bool = False

    @property
    def status(self) -> str:
        """One of matched, renamed, added and removed."""
        if self.old is None:
            return "added"
        if self.new is None:
            return "removed"
        return "renamed" if self.is_renamed else "matched"


def match(old: Side, new: Side) -> list[Pair]:
    """Match the paths of two sides; the first pair is the session, parents precede children."""
    pairs = [Pair(SESSION, SESSION, SESSION)]
    matching, first = Matching(), 0
    while first < len(pairs):
        level = range(first, len(pairs))
        first = len(pairs)
        children = [
            (_children(old, pair.old), _children(new, pair.new)) for pair in pairs[level.start :]
        ]
        matched = matching.match([(_labels(before), _labels(after)) for before, after in children])
        for number, (before, after), (equal, renamed) in zip(level, children, matched, strict=True):
            olds, news = list(before.values()), list(after.values())
            partners = equal | renamed
            for i, path in enumerate(olds):
                partner = news[partners[i]] if i in partners else None
                pairs.append(Pair(number, path, partner, is_renamed=i in renamed))
            taken = set(partners.values())
            pairs += [Pair(number, None, path) for j, path in enumerate(news) if j not in taken]
    return pairs


def _children(side: Side, path: int | None) -> dict[Key, int]:
    return {} if path is None else side.children[path]


def _labels(children: dict[Key, int]) -> list[Label]:
    return [(name, kind) for name, kind, _ in children]


def path_names(pairs: Sequence[Pair], old: Side, new: Side) -> list[str]:
    """Return the names along each path, from the outermost op below the cell, with `` / ``."""
    texts: list[str] = []
    for pair in pairs:
        side, path = (old, pair.old) if pair.new is None else (new, pair.new)
        name = side.names[path or SESSION] or ""
        above = texts[pair.parent] if texts else ""
        if side.types[path or SESSION] in ("cell", None):
            texts.append(above)
        else:
            texts.append(f"{above} / {name}" if above else name)
    return texts
