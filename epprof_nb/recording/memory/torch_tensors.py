"""Addresses of the tensors that models and optimizers keep, by category."""

from __future__ import annotations

import sys
import weakref
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.util.user_errors import USER_ERRORS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from epprof_nb.arrays.types import IntArray


class KeptTensors:
    """Finds the parameters, gradients and optimizer states of the program.

    Models are those in the user's namespace and those that were called, optimizers those that step
    between `start` and `stop`. No tensor is kept alive.
    """

    def __init__(self) -> None:
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._hook: Any = None

    def start(self) -> None:
        """Notice optimizers from now on. torch is imported."""
        if self._hook is None:
            optimizer = sys.modules["torch.optim.optimizer"]
            self._hook = optimizer.register_optimizer_step_post_hook(self._stepped)

    def stop(self) -> None:
        """Remove the hook, and forget the optimizers."""
        hook, self._hook = self._hook, None
        if hook is not None:
            hook.remove()
        self._optimizers = weakref.WeakSet()

    def tensors(self, called: Iterable[Any] = ()) -> dict[str, list[Any]]:
        """Return the tensors, by category as in `BLOCK_CATEGORIES`.

        Parameters
        ----------
        called
            The models that were called.
        """
        optimizers = list(self._optimizers)
        models = [*called, *_in_namespace()]
        parameters = [*chain.from_iterable(map(of_model, models)), *_of_optimizers(optimizers)]
        tensor_type = sys.modules["torch"].Tensor
        states = (one for each in optimizers for one in tensors_in(each.state, tensor_type))
        return {
            "optimizer state": list(states),
            "gradient": list(_gradients(parameters)),
            "parameter": parameters,
        }

    def _stepped(self, optimizer: Any, *_: object) -> None:  # noqa: ANN401
        with suppress(*USER_ERRORS):  # one without a hash; its step continues
            self._optimizers.add(optimizer)


def _in_namespace() -> list[Any]:
    """Return the models in the user's namespace."""
    module_type = sys.modules["torch"].nn.Module
    namespace = getattr(sys.modules.get("__main__"), "__dict__", {})
    # `type` runs no code of proxies, unlike `isinstance`.
    return [value for value in list(namespace.values()) if issubclass(type(value), module_type)]


def of_model(model: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield the parameters and buffers of a model."""
    with suppress(*USER_ERRORS):  # models of users may raise anything
        yield from model.parameters()
        yield from model.buffers()


def _of_optimizers(optimizers: Iterable[Any]) -> Iterator[Any]:
    for optimizer in optimizers:
        with suppress(*USER_ERRORS):  # optimizers of users may raise anything
            for group in optimizer.param_groups:
                yield from group["params"]


def _gradients(parameters: Iterable[Any]) -> Iterator[Any]:
    for parameter in parameters:
        with suppress(*USER_ERRORS):  # classes of users may raise anything
            # Others have none, and torch would warn.
            if parameter.is_leaf and parameter.grad is not None:
                yield parameter.grad


def tensors_in(value: Any, tensor_type: type) -> Iterator[Any]:  # noqa: ANN401
    """Yield the tensors in nested dicts, lists and tuples."""
    todo, seen = [value], set()
    while todo:
        value = todo.pop()
        kind = type(value)  # `isinstance` runs code of proxies
        if issubclass(kind, dict | list | tuple):
            if id(value) not in seen:  # it may contain itself
                seen.add(id(value))
                todo += dict.values(value) if issubclass(kind, dict) else value
        elif issubclass(kind, tensor_type):
            yield value


def addresses_of(values: Iterable[Any]) -> IntArray:
    """Return the addresses of the storages of those values that are tensors on GPUs, ascending."""
    tensor_type = sys.modules["torch"].Tensor
    found = set()
    for value in values:
        with suppress(*USER_ERRORS):  # a tensor without storage, as of a subclass
            if isinstance(value, tensor_type) and value.is_cuda:
                found.add(value.untyped_storage().data_ptr())
    return np.array(sorted(found - {0}), np.int64)
