"""Calls of compiled code, with the models that contain its modules.

TorchDynamo runs compiled code with any model that its guards accept: the layers of a model share
the code of one layer. For a forward pass, the models are in the variables of the compiled function.
Its backward pass is the autograd node that the forward call created.
"""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import CodeType

_ROOT = re.compile(r"([LG])\['([^']+)'\]")
_STEP = re.compile(r"\._modules\['([^']+)'\]|\['([^']+)'\]|\[(\d+)\]|\.([^.\[]+)")
_COMPILED = "__compiled_fn"
"""Prefix of the global names with which a compiled function calls its graphs."""
_MAX_FRAMES = 100
_MAX_CALLS = 100_000
"""Maximum number of forward passes that wait for a backward pass."""


Place = tuple[int, "CodeType"]
"""Number of frames from a call of `CompiledCalls.forward` outwards, and the code of that frame."""


class Roots:
    """The objects at the beginning of module paths, in one call.

    Parameters
    ----------
    values
        The objects by their expression in TorchDynamo.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = {}
        for name, value in values.items():
            try:
                self._values[name] = ref(value)
            except TypeError:  # not a model
                continue

    def find(self, path: str) -> Any:  # noqa: ANN401
        """Return the module with this path; None if there is none."""
        root = _ROOT.match(path)
        reference = self._values.get(root[0]) if root else None
        found = reference() if reference is not None else None
        if root is None or found is None:
            return None
        end = root.end()
        while end < len(path):
            step = _STEP.match(path, end)
            if step is None:
                return None
            end = step.end()
            name = next(filter(None, step.groups()))
            # Not getattr(), which may run code of the user.
            own = getattr(found, "__dict__", {})
            found = own.get("_modules", {}).get(name, own.get(name))
            if found is None:
                return None
        return found


def root_names(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the first expressions of some paths, sorted."""
    return tuple(sorted({root[0] for path in paths if (root := _ROOT.match(path))}))


class CompiledCalls:
    """The calls of compiled code in one session."""

    def __init__(self) -> None:
        import torch

        self._number = torch.autograd._get_sequence_nr  # noqa: SLF001 - there is no public name
        self._node = torch._C._current_autograd_node  # noqa: SLF001 - the same
        self._roots: dict[tuple[int, ...], Roots] = {}
        self._codes: dict[int, tuple[CodeType, bool]] = {}
        self._of_node: dict[int, Roots | None] = {}

    def forward(
        self, names: tuple[str, ...], place: Place | None, *, has_backward: bool
    ) -> tuple[Roots | None, Place | None]:
        """Return the objects of a starting forward pass.

        Parameters
        ----------
        names
            The first expressions of its modules' paths.
        place
            Where an earlier call of this code found them; also returned.
        has_backward
            Whether the call has created the node of a backward pass.
        """
        frame: Any = None
        if place is not None:
            with suppress(ValueError):  # the stack is not that deep
                frame = sys._getframe(place[0])  # noqa: SLF001 - the only way to the variables
        if frame is None or place is None or frame.f_code is not place[1]:
            frame, place = self._find_caller()
        if frame is None:
            return None, None
        variables = {"L": frame.f_locals, "G": frame.f_globals}
        values = {}
        for name in names:
            root = _ROOT.match(name)
            if root is not None:
                values[name] = variables[root[1]].get(root[2])
        key = tuple(id(value) for value in values.values())
        roots = self._roots.get(key)
        if roots is None:
            roots = self._roots[key] = Roots(values)
        if has_backward:
            # The node already exists, and the next node gets the following number. Threads number
            # their nodes independently.
            number = self._number() - 1
            if len(self._of_node) >= _MAX_CALLS:
                self._of_node.clear()
            known = self._of_node.setdefault(number, roots)
            if known is not roots:
                self._of_node[number] = None
        return roots, place

    def _find_caller(self) -> tuple[Any, Place | None]:
        """Return the frame of the compiled function, and its place relative to `forward`.

        Inspecting each frame on the way takes longer than everything else, so the place is kept.
        """
        frame: Any = sys._getframe(1)  # noqa: SLF001 - the only way to the caller's variables
        for depth in range(_MAX_FRAMES):
            if frame is None:
                break
            if self._is_of_user(frame.f_code):
                return frame, (depth, frame.f_code)
            frame = frame.f_back
        return None, None

    def _is_of_user(self, code: CodeType) -> bool:
        """Whether this is the code of a compiled function."""
        known = self._codes.get(id(code))
        if known is None:
            is_of_user = any(name.startswith(_COMPILED) for name in code.co_names)
            # Keep the code so that its id stays unique. Hashing the code takes longer.
            known = self._codes[id(code)] = (code, is_of_user)
        return known[1]

    def backward(self) -> Roots | None:
        """Return the objects of the forward pass whose backward pass begins, if known."""
        node = self._node()
        return self._of_node.get(node._sequence_nr()) if node is not None else None  # noqa: SLF001
