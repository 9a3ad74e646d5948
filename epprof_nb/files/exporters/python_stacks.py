"""Python stacks for files of other tools: labels of frames, and weighted paths of a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from epprof_nb.analysis.base.index import index_of
from epprof_nb.analysis.base.stack_lines import StackLines, frame_label
from epprof_nb.analysis.stacks.by_stack import stack_tree
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData

Measure: TypeAlias = Literal["device_ns", "launches", "waits", "wait_ns"]
MEASURES: tuple[Measure, ...] = get_args(Measure)


class StackLabels:
    """Labels of the stacks of a profile.

    Attributes
    ----------
    frames
        Label of the innermost frame of each stack, as ``train (In[3]:14)``, and None as last
        element.
    launched_at
        Label of the innermost frame of the user's code in each stack; None for none.
    parent
        int64 array: the stack that called each one; `MISSING` for none.
    """

    def __init__(self, profile: ProfileData) -> None:
        lines = index_of(profile).cached(StackLines)
        functions, files = lines.function.to_list(), lines.file.to_list()
        self.frames: list[str | None] = [
            frame_label(function, file, line)
            for function, file, line in zip(functions, files, lines.line.tolist(), strict=True)
        ]
        self.frames.append(None)
        self.launched_at = [self.frames[own] for own in lines.own.tolist()]
        self.parent = lines.parent
        self._args: dict[int, dict[str, str | float]] = {}

    def args(self, stack: int) -> dict[str, str | float]:
        """Return the arguments of an event with this stack: where it was launched, and from."""
        found = self._args.get(stack)
        if found is None:
            found = self._args[stack] = self._args_of(stack)
        return found

    def _args_of(self, stack: int) -> dict[str, str | float]:
        place = self.launched_at[stack]
        found: dict[str, str | float] = {} if place is None else {"launched_at": place}
        labels = []
        while stack != MISSING:
            labels.append(self.frames[stack] or "")
            stack = int(self.parent[stack])
        if labels:
            found["stack"] = "\n".join(labels)
        return found


class WeightedPath(NamedTuple):
    """A path from the outermost frame down to an activity, or a frame that waited.

    Attributes
    ----------
    nodes
        Name, file and line of each step; the file is None for an activity.
    weight
        The measure of the last step without those below it.
    """

    nodes: tuple[tuple[str, str | None, int], ...]
    weight: int


def weighted_paths(profile: ProfileData, measure: Measure, *, library: bool) -> list[WeightedPath]:
    """Return the paths of the tree of stacks whose last frame has a measure itself."""
    tree = stack_tree(index_of(profile), library=library)
    values: IntArray = tree[measure].copy()
    parent = tree["parent"]
    below = np.flatnonzero(parent >= 0)
    np.subtract.at(values, parent[below], tree[measure][below])
    nodes = list(
        zip(
            (str(name) for name in tree.values("name")),
            tree.names("cell").to_list(),
            tree["line"].tolist(),
            strict=True,
        )
    )
    paths: dict[int, tuple[tuple[str, str | None, int], ...]] = {0: ()}
    found = []
    for row in np.lexsort((np.arange(len(parent)), tree["depth"])).tolist():
        if row:
            paths[row] = (*paths[int(parent[row])], nodes[row])
        if values[row] > 0:
            found.append(WeightedPath(paths[row], int(values[row])))
    return found
