"""Link between live views that zoom and move together."""

from __future__ import annotations

from typing import Any, NamedTuple


class Link(NamedTuple):
    """Membership of a view in a group, in times of its own profile (ns).

    Attributes
    ----------
    group
        Id of the group.
    origin
        Time at the same position as the origins of the other views.
    first
        Start and end of the first time range, relative to `origin`.
    low, high
        Time range that the view can show; of the same length and place in all views of the group.
    """

    group: str
    origin: int
    first: tuple[int, int]
    low: int
    high: int

    def to_json(self) -> dict[str, Any]:
        """Return the fields for the viewer."""
        first = dict(zip(("start", "end"), self.first, strict=True))
        return {"group": self.group, "origin": self.origin, "first": first}
