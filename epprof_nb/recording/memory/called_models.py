"""Models that the program calls, with their parameters and the tensors given to them."""

from __future__ import annotations

import sys
import weakref
from array import array
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.recording.memory.torch_tensors import of_model, tensors_in
from epprof_nb.util.user_errors import USER_ERRORS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from epprof_nb.arrays.types import IntArray

_MOST = 200_000
"""Tensors of each kind that are noted; later ones are not known."""


class CalledModels:
    """Notes the outermost calls of modules. Neither models nor tensors are kept alive."""

    def __init__(self) -> None:
        self._noted = {name: array("q") for name in ("parameter", "input")}
        # By their ids: modules of users may have no hash.
        self._models: dict[int, weakref.ref[Any]] = {}

    def start(self) -> None:
        """Note calls from now on, of modules whose calls are recorded."""
        self._forget()
        _native.modules_on_outermost(self._note)

    def stop(self) -> None:
        """Note no more, and forget what was noted."""
        _native.modules_on_outermost(None)
        self._forget()

    def read(self) -> dict[str, IntArray]:
        """Return the tensors given to models, and their parameters at the first call, by category.

        Each has its time (CLOCK_MONOTONIC) and the address of its storage, in arrays of shape
        (n, 2).
        """
        return {
            name: np.array(noted, np.int64).reshape(-1, 2) for name, noted in self._noted.items()
        }

    def models(self) -> list[Any]:
        """Return the models that still exist."""
        found = (reference() for reference in list(self._models.values()))
        return [model for model in found if model is not None]

    def _forget(self) -> None:
        self._noted = {name: array("q") for name in self._noted}
        self._models = {}

    def _note(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> None:
        model, tensor_type = args[0], sys.modules["torch"].Tensor
        if self._is_new(model):
            self._add("parameter", of_model(model))
        self._add("input", tensors_in([*args[1:], *(kwargs or {}).values()], tensor_type))

    def _is_new(self, model: Any) -> bool:  # noqa: ANN401
        known = self._models.get(id(model))
        if known is not None and known() is not None:
            return False
        with suppress(TypeError):  # a class without weak references
            self._models[id(model)] = weakref.ref(model)
            return True
        return False

    def _add(self, category: str, tensors: Iterable[Any]) -> None:
        noted, now = self._noted[category], _native.now_ns()
        for value in tensors:
            if len(noted) >= 2 * _MOST:
                return
            with suppress(*USER_ERRORS):  # tensors of subclasses may be anything
                if value.is_cuda:
                    # Both numbers or none, whatever the tensor returns.
                    noted += array("q", (now, value.untyped_storage().data_ptr()))
