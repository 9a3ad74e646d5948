"""Limits of kernels: they leave nodes to others although operator, version and types fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias


class StaticNode(NamedTuple):
    """A node while a session is created, with properties that do not depend on the data."""

    attrs: Mapping[str, Any]
    """Attributes, with the defaults of the schema, other than tensors and graphs."""
    inputs: tuple[bool, ...]
    """Whether the node has each input."""

    def has_input(self, *numbers: int) -> bool:
        """Whether the node has one of these inputs."""
        return any(number < len(self.inputs) and self.inputs[number] for number in numbers)


Limits: TypeAlias = Mapping[str, Callable[[StaticNode], bool]]
"""Reasons why a kernel does not take a node, with functions that check whether each holds."""


def limit_of(limits: Limits, node: StaticNode) -> str | None:
    """Return the first reason that holds for a node; None if the kernel takes it."""
    return next((reason for reason, holds in limits.items() if holds(node)), None)
