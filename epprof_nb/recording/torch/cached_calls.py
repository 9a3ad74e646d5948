"""Calls of models with a KV cache, in any loop, and how many tokens each of them processes.

A call counts if it is the outermost one of a module with a cache and tokens among its arguments.
The shape of its input has the number of tokens. The cache holds as many as the size or number in it
that grows by the tokens of each call; else as a position in host memory, or the length of the mask
says; else as many as earlier calls with it have processed.
"""

from __future__ import annotations

import inspect
import sys
import threading
import weakref
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from epprof_nb.data.cache_uses import MOST, AmbiguousCacheError, CacheUse, continued
from epprof_nb.data.token_arguments import MAX_DRAFT
from epprof_nb.recording import token_log
from epprof_nb.recording.frameworks.patches import Patches
from epprof_nb.recording.torch import kv_caches
from epprof_nb.recording.torch.call_lengths import Query, first_position, query_of
from epprof_nb.util.after_import import after_import, cancel
from epprof_nb.util.user_errors import USER_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_CACHES_OF_TRANSFORMERS = "transformers.cache_utils"
_MAX_TRIES = 4
"""Maximum number of calls in which the length of a cache is searched."""
_MAX_LATEST = 256
"""Maximum number of histories that are kept although their caches are gone."""


def _nothing() -> None:
    """Return None, as a reference to a module that is gone."""


class CachedCalls:
    """Logs how many tokens each call of a model with a KV cache processes.

    Attributes
    ----------
    plain, takes_cache
        See `_native.RecordedModule`.

    Parameters
    ----------
    is_generating
        Whether a library generates on this thread, which logs the calls itself.
    """

    def __init__(self, is_generating: Callable[[], bool]) -> None:
        self.plain: set[type] = {
            torch.Tensor, torch.nn.Parameter, type(None), bool, int, float, str, torch.dtype,
        }  # fmt: skip
        self.takes_cache: dict[type, bool] = {}
        self._is_generating = is_generating
        self._parameters: dict[type, tuple[str, ...]] = {}
        self._histories = _Histories()
        self._patches = Patches()
        after_import(_CACHES_OF_TRANSFORMERS, self._record_resets)

    def _record_resets(self) -> None:
        cache = getattr(sys.modules[_CACHES_OF_TRANSFORMERS], "Cache", None)
        if hasattr(cache, "reset"):
            self._patches.replace(cache, "reset", self._recorded_reset)

    def _recorded_reset(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def reset(cache: Any, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401
            history = self._histories.find(cache)
            if history is not None:
                history.held = 0
            return original(cache, *args, **kwargs)

        return reset

    def stop(self) -> None:
        """Restore the functions of transformers."""
        cancel(_CACHES_OF_TRANSFORMERS, self._record_resets)
        self._patches.restore()

    def begin(
        self,
        module: Any,  # noqa: ANN401
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
    ) -> Callable[[Any], None] | None:
        """Begin a call; see ``begin_model`` of `_native.RecordedModule`."""
        if self._is_generating():
            return _ignore
        if torch._C._get_tracing_state() is not None:  # noqa: SLF001 - sizes are part of the trace
            return None
        # Arguments of the user may be anything. Modes of the user must not see these reads.
        with suppress(*USER_ERRORS), torch._C.DisableTorchFunction():  # noqa: SLF001
            names = self._names(module)
            named = dict(zip(names, args[1:], strict=False))
            named |= {i: value for i, value in enumerate(args) if i > len(names)}
            named |= kwargs or {}
            query = query_of(named)
            if query is None:
                return None
            caches = kv_caches.caches_in(named.items())
            if caches:
                return _Call(self._histories, _inner(module), named, caches, query).end
            if self.takes_cache.get(type(module)) is not False:
                return _CallWithoutCache(self._histories, _inner(module), query).end
        return None

    def prepare(self, classes: Iterable[type]) -> None:
        """Find out which classes of modules take a cache, rather than during their first call."""
        for of_module in classes:
            with suppress(*USER_ERRORS):
                names, self.takes_cache[of_module] = _parameters_of(of_module.forward)  # type: ignore[attr-defined]
                self._parameters[of_module] = names

    def _names(self, module: Any) -> tuple[Any, ...]:  # noqa: ANN401
        """Return the names of the parameters of a module that may be given by position."""
        inner = _inner(module)
        names = self._parameters.get(type(inner))
        if names is None:
            names, takes_cache = _parameters_of(type(inner).forward)
            self._parameters[type(inner)] = names
            if inner is module:  # a compiled module may hold one of any class
                self.takes_cache[type(module)] = takes_cache
        return names


def _inner(module: Any) -> Any:  # noqa: ANN401
    """Return the module that a compiled one calls; another module itself."""
    return vars(module).get("_modules", {}).get("_orig_mod", module)


_known_parameters: weakref.WeakKeyDictionary[Any, tuple[tuple[str, ...], bool]] = (
    weakref.WeakKeyDictionary()
)
"""Results of `_parameters_of`, since `inspect` takes as long as a forward pass of many modules."""


def _parameters_of(forward: Any) -> tuple[tuple[str, ...], bool]:  # noqa: ANN401
    """Return the names of the positional parameters of a method, and whether it takes a cache."""
    with suppress(TypeError):  # it may have no hash, or no weak references
        if (known := _known_parameters.get(forward)) is not None:
            return known
    found = list(inspect.signature(forward).parameters.values())[1:]
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = tuple(each.name for each in found if each.kind in by_position)
    result = names, any(kv_caches.is_name(each.name) for each in found)
    with suppress(TypeError):
        _known_parameters[forward] = result
    return result


@dataclass(slots=True, eq=False)
class _History(CacheUse):
    """The calls so far with one cache, in whatever objects it was.

    Attributes
    ----------
    turn
        Number of the cache; see `token_log.TokenCall`. `UNKNOWN` if its calls may continue several.
    module, thread
        The module that was called last, and the thread.
    batch, shapes
        Number of sequences of the last call, and shapes of the first tensors that may be its cache.
    path
        Leads to the number in the cache that is its length; None if it is not known.
    tries
        Calls in which that number was sought.
    version
        See `kv_caches.version`.
    pending
        The call that made the cache, until another one uses the cache.
    """

    turn: int = token_log.UNKNOWN
    module: Callable[[], Any] = _nothing
    thread: int = 0
    batch: int = token_log.UNKNOWN
    shapes: tuple[tuple[int, ...], ...] = ()
    path: kv_caches.Path | None = None
    tries: int = 0
    version: int = token_log.UNKNOWN
    pending: token_log.TokenCall | None = None

    def length_in(self, cache: Any, first: torch.Tensor | None, batch: int) -> int:  # noqa: ANN401
        """Return how many tokens a cache holds if it continues this one; `UNKNOWN` if it cannot."""
        if self.path is not None:
            return kv_caches.number_at(cache, self.path) or token_log.UNKNOWN
        if first is None:
            return token_log.UNKNOWN
        lengths = (
            kv_caches.shorter_length(shape, tuple(first.shape), self.held, (self.batch, batch))
            for shape in self.shapes
        )
        return max(lengths, default=token_log.UNKNOWN)


class _Histories:
    """Histories by cache. They do not keep a cache in memory."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[weakref.ref[object], _History]] = {}
        self._latest: dict[int, _History] = {}

    def find(self, *values: object) -> _History | None:
        """Return the history of a cache, by the object or its first tensor."""
        for value in values:
            known = self._of.get(id(value))
            if known is not None and known[0]() is value:
                return known[1]
        return None

    def continued(
        self,
        module: Any,  # noqa: ANN401
        cache: Any,  # noqa: ANN401
        first: torch.Tensor | None,
        query: Query,
    ) -> _History | None:
        """Return the history of a module that goes on with other objects on this thread.

        Raises
        ------
        AmbiguousCacheError
            If it may be one of several.
        """
        thread = threading.get_ident()
        known = [
            (history, history.length_in(cache, first, query.batch))
            for history in reversed(list(self._latest.values()))
            if history.thread == thread and history.module() is module
        ]
        return continued(known[:MOST], query.tokens)

    def called(self, history: _History) -> None:
        """Make a history the latest one."""
        history.thread = threading.get_ident()
        self._latest.pop(id(history), None)
        self._latest[id(history)] = history
        if len(self._latest) > _MAX_LATEST:
            self._latest.pop(next(iter(self._latest)), None)

    def set(self, history: _History, *values: object) -> None:
        """Set the history of a cache: of the object and its first tensor."""
        for value in values:
            with suppress(TypeError):  # a tuple, list or dict; or None
                forget = partial(self._forget, id(value))
                self._of[id(value)] = weakref.ref(value, forget), history

    def _forget(self, key: int, reference: object) -> None:
        known = self._of.get(key)
        if known is not None and known[0] is reference:
            del self._of[key]


def _ignore(_: object) -> None:
    pass


class _CallWithoutCache:
    """A call without a cache, of a module that takes one."""

    __slots__ = ("_begin_ns", "_histories", "_module", "_query")

    def __init__(self, histories: _Histories, module: Any, query: Query) -> None:  # noqa: ANN401
        self._histories, self._module, self._query = histories, weakref.ref(module), query
        self._begin_ns = token_log.now()

    def end(self, result: object) -> None:
        """Remember the call, in case that a later one uses its cache."""
        # Models of the user may return anything.
        with suppress(*USER_ERRORS), torch._C.DisableTorchFunction():  # noqa: SLF001
            cache = kv_caches.cache_of_result(result)
            made = kv_caches.parts_of_result(result) if cache is None else [cache]
            firsts = [tensor for each in made for tensor in kv_caches.tensors(each, 1)]
            if not firsts:
                return
            batch, tokens, _ = self._query
            turn = token_log.new_turn()
            size = (
                token_log.UNKNOWN if cache is None else kv_caches.nbytes(kv_caches.tensors(cache))
            )
            history = _History(turn=turn, module=self._module, batch=batch)
            history.pending = token_log.ended(self._begin_ns, batch, tokens, 0, size, turn=turn)
            history.shapes = tuple(tuple(tensor.shape) for tensor in firsts)
            history.called(0, tokens, self._begin_ns)
            self._histories.called(history)
            # Keys may be a part of a projection, and so is what the loop cuts from them.
            self._histories.set(history, *made, *firsts, *map(kv_caches.viewed, firsts))


class _Call:
    """A call with a cache."""

    __slots__ = (
        "_before", "_begin_ns", "_cache", "_histories", "_history", "_others", "_position",
        "_query",
    )  # fmt: skip

    def __init__(
        self,
        histories: _Histories,
        module: Any,  # noqa: ANN401
        named: dict[Any, Any],
        caches: list[Any],
        query: Query,
    ) -> None:
        self._histories = histories
        cache, *self._others = caches
        self._cache = cache
        first = next(iter(kv_caches.tensors(cache, 1)), None)
        if query.is_flat and first is not None and first.shape[0] == query.tokens > 1:
            query = Query(query.tokens, 1, is_flat=False)
        self._query = query
        history = histories.find(cache, first, kv_caches.viewed(first))
        self._before: dict[kv_caches.Path, int] = {}
        if history is None or (history.path is None and history.tries < _MAX_TRIES):
            self._before = kv_caches.numbers(cache)
        if history is None:
            history = self._continued(module, first)
        if history is None:
            # A single token continues something, unless the cache is empty.
            is_unknown = first is not None and query.tokens == 1
            history = _History(held=token_log.UNKNOWN if is_unknown else 0)
            history.turn = token_log.new_turn()
        elif history.path is not None:
            self._before = {history.path: kv_caches.number_at(cache, history.path) or 0}
        history.module = weakref.ref(module)
        self._history = history
        self._position = first_position(named, query, first)
        if self._position is None and query.tokens > 1:
            self._position = self._unless_new_prompt(first)
        self._begin_ns = token_log.now()

    def _continued(self, module: Any, first: torch.Tensor | None) -> _History | None:  # noqa: ANN401
        try:
            return self._histories.continued(module, self._cache, first, self._query)
        except AmbiguousCacheError:
            return _History(held=token_log.UNKNOWN)

    def _unless_new_prompt(self, first: torch.Tensor | None) -> int | None:
        """Return 0 or `UNKNOWN` tokens in a cache that may be used for another prompt."""
        history = self._history
        now = kv_caches.version(first)
        if token_log.UNKNOWN not in (now, history.version) and now != history.version:
            return 0  # it was overwritten since the last call
        is_long = history.decoded and self._query.tokens > MAX_DRAFT
        return token_log.UNKNOWN if is_long and history.held else None

    def end(self, result: object) -> None:
        """Log the call; `result` is None if it failed."""
        if result is None:
            return
        # Models of the user may return anything.
        with suppress(*USER_ERRORS), torch._C.DisableTorchFunction():  # noqa: SLF001
            history, (batch, tokens, _) = self._history, self._query
            made = kv_caches.cache_of_result(result)
            if made is None:
                made = kv_caches.grown_in_result(result, self._cache, tokens)
            past = self._grown(self._cache if made is None else made)
            if past is None and made is not None and made is not self._cache:
                past = self._grown(self._cache)
            if past is None:
                past = history.held if self._position is None else self._position
            is_known = history.turn != token_log.UNKNOWN
            if not is_known:
                past = token_log.UNKNOWN
            if history.pending is not None:
                token_log.add(history.pending)
                history.pending = None
            after = self._cache if made is None else made
            held = kv_caches.tensors(after)
            others = [tensor for cache in self._others for tensor in kv_caches.tensors(cache)]
            size = kv_caches.nbytes(held + others)
            token_log.add(
                token_log.ended(self._begin_ns, batch, tokens, past, size, turn=history.turn)
            )
            history.called(past, tokens, self._begin_ns)
            history.version = kv_caches.version(held[0] if held else None)
            history.batch, history.shapes = batch, tuple(tuple(t.shape) for t in held[:1])
            if is_known:
                self._histories.called(history)
            self._histories.set(history, self._cache, after, *held[:1])

    def _grown(self, after: Any) -> int | None:  # noqa: ANN401
        """Return the number in the cache before the call that has grown by its tokens."""
        history, before, tokens = self._history, self._before, self._query.tokens
        if history.path is not None:
            past = before.get(history.path, 0)
            if (kv_caches.number_at(after, history.path) or 0) - past == tokens:
                return past
            return None
        if not before:
            return None
        history.tries += 1
        found = [
            path
            for path, number in kv_caches.numbers(after).items()
            if path in before and number - before[path] == tokens
        ]
        sizes = [path for path in found if kv_caches.is_size(path)]
        # A number that grows by one may count calls, but a single one is probably the length.
        is_certain = tokens > 1 or (history.held == token_log.UNKNOWN and len(found) == 1)
        others = [path for path in found if is_certain or before[path] == history.held]
        for path in [*sizes, *others]:
            history.path = path
            return before[path]
        return None
