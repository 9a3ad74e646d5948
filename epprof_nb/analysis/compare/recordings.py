"""Recordings: the recordings of one side of a comparison, with their measures."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.compare.elapsed_parts import elapsed, measure_elapsed
from epprof_nb.analysis.compare.match_ops import Side
from epprof_nb.analysis.compare.op_path_shapes import OpPathShapes
from epprof_nb.analysis.compare.times_per_repeat import (
    add_captured_ops,
    counted_cells,
    inside_run,
    measure_kernels,
    measure_ops,
    repeat_numbers,
    repeats_of,
)
from epprof_nb.arrays.groups import group_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.data.profile_data import ProfileData

T = TypeVar("T")


def have_common_recording(old: Sequence[ProfileIndex], new: Sequence[ProfileIndex]) -> bool:
    """Return whether both sides contain the same recording, or copies of it."""
    return any(_are_copies(one.profile, other.profile) for one in old for other in new)


def _are_copies(one: ProfileData, other: ProfileData) -> bool:
    if one is other:
        return True
    # The time of the start is part of the info.
    return one.info == other.info and all(
        np.array_equal(one.tables[table][column], other.tables[table][column])
        for table in ("ops", "activities")
        for column in ("start_ns", "duration_ns")
    )


class Recordings:
    """The recordings of one side.

    Attributes
    ----------
    indexes
        Index of each recording.
    side, paths, owners
        The paths of the ops, and the path of each op and of each activity of each recording.
    ops, kernels, parts, elapsed
        The measures of each recording.
    """

    def __init__(self, profiles: Sequence[ProfileData]) -> None:
        self.indexes = [ProfileIndex(profile) for profile in profiles]
        self.side = Side()
        self.paths = [self.side.add(index) for index in self.indexes]
        self.owners = [
            self.side.owners(index, paths)
            for index, paths in zip(self.indexes, self.paths, strict=True)
        ]
        count = len(self.side.children)
        self.ops = [
            measure_ops(index, paths, count)
            for index, paths in zip(self.indexes, self.paths, strict=True)
        ]
        for index, owners, ops in zip(self.indexes, self.owners, self.ops, strict=True):
            add_captured_ops(index, owners, self.side, ops)
        self.kernels = [
            measure_kernels(index, owners)
            for index, owners in zip(self.indexes, self.owners, strict=True)
        ]
        self.parts = [
            measure_elapsed(
                index,
                counted_cells(index, paths),
                owners,
                repeat_numbers(index, index.profile.tables["activities"]["repeat"]),
                self.side,
            )
            for index, paths, owners in zip(self.indexes, self.paths, self.owners, strict=True)
        ]
        self.elapsed = [elapsed(index)[None, :] for index in self.indexes]

    @property
    def repeats(self) -> tuple[int, ...]:
        """Number of repeats of each recording."""
        return tuple(repeats_of(index) for index in self.indexes)

    def shapes(self) -> list[OpPathShapes]:
        """Return the input shapes of each path."""
        found = [Counter[str]() for _ in self.side.children]
        is_sampled = np.zeros(len(found), np.bool_)
        for index, paths, measures in zip(self.indexes, self.paths, self.ops, strict=True):
            shapes = index.profile.tables["ops"].names("input_shapes")
            known = np.flatnonzero(shapes.codes >= 0)
            codes, first = group_codes(paths[known], shapes.codes[known])
            for row, count in zip(known[first], np.bincount(codes).tolist(), strict=True):
                found[paths[row]][shapes.categories[shapes.codes[row]]] += count
            if not measures.has_nodes.all():
                is_sampled[paths[:-1][inside_run(index)]] = True
        return [
            OpPathShapes(frozenset(counts), counts.total(), is_sampled=sampled)
            for counts, sampled in zip(self._with_captured(found), is_sampled.tolist(), strict=True)
        ]

    def first_ops(self, column: str) -> list[str | None]:
        """Return the value of a column of names for the first op of each path."""
        found: list[str | None] = [None] * len(self.side.children)
        for index, paths in zip(self.indexes, self.paths, strict=True):
            values = index.profile.tables["ops"].names(column)
            present, first = np.unique(paths[:-1], return_index=True)
            for path, value in zip(present.tolist(), values.take(first).to_list(), strict=True):
                found[path] = found[path] or value
        return self._with_captured(found)

    def _with_captured(self, found: list[T]) -> list[T]:
        """Copy the properties of capturing ops to their paths below replays."""
        for path, source in self.side.captured.items():
            found[path] = found[path] or found[source]
        return found
