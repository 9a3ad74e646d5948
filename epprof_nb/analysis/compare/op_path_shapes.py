"""Input shapes of the executions of a path, and whether they differ between two sides."""

from __future__ import annotations

from dataclasses import dataclass

_LEAST_RECORDED = 3
"""Minimum number of executions with one shape to assume it for unrecorded executions too."""


@dataclass(frozen=True, slots=True)
class OpPathShapes:
    """The distinct input shapes of a path.

    Attributes
    ----------
    shapes
        The shapes; empty if unknown.
    executions
        Number of executions whose shapes are known.
    is_sampled
        Whether some runs of ONNX Runtime sessions were not recorded node by node.
    """

    shapes: frozenset[str]
    executions: int
    is_sampled: bool = False

    def differs_from(self, other: OpPathShapes) -> bool:
        """Return whether the shapes are known to differ.

        Unrecorded executions may have had any shape, unless at least three were recorded and all
        had the same.

        Examples
        --------
        >>> one, both = frozenset({"float[1]"}), frozenset({"float[1]", "float[2]"})
        >>> OpPathShapes(one, 12).differs_from(OpPathShapes(both, 12))
        True
        >>> OpPathShapes(one, 12, is_sampled=True).differs_from(OpPathShapes(both, 12))
        False
        """
        if not self.shapes or not other.shapes:
            return False
        if self.is_sampled and other.is_sampled:
            return self._is_constant() and other._is_constant() and self.shapes != other.shapes
        if self.is_sampled:
            return not self.shapes <= other.shapes
        if other.is_sampled:
            return not other.shapes <= self.shapes
        return self.shapes != other.shapes

    def _is_constant(self) -> bool:
        return len(self.shapes) == 1 and self.executions >= _LEAST_RECORDED

    def text(self, other: OpPathShapes) -> str:
        """Return the shapes; shapes that the other side lacks come first."""
        return ", ".join(sorted(self.shapes, key=lambda shape: (shape in other.shapes, shape)))
