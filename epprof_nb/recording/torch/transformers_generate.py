"""Lengths of the calls that ``generate`` of transformers makes, for prefill and decode."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from epprof_nb.recording import token_log
from epprof_nb.recording.frameworks.patches import Patches
from epprof_nb.util.after_import import after_import, cancel
from epprof_nb.util.user_errors import USER_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable

_MODULE = "transformers.generation.utils"
_CACHES = ("past_key_values", "cache_params", "state", "mems")
"""Model outputs with a cache; see ``ALL_CACHE_NAMES`` of transformers."""

_WHOLE_SEQUENCE = (
    "decoder_attention_mask", "decoder_position_ids", "attention_mask", "position_ids",
)  # fmt: skip
"""Arguments of models with one element per token of the sequence so far."""


class _Generation:
    """A generation in progress: the start of its current step, and the contents of its cache."""

    __slots__ = ("begin", "cached", "is_decode", "turn")

    def __init__(self, cached: int) -> None:
        self.begin = token_log.now()
        self.cached = cached
        self.turn = token_log.new_turn()
        self.is_decode = False


class _Local(threading.local):
    generation: _Generation | None = None


class Generations:
    """Logs how many tokens each step of ``generate`` processes, from the shapes of its tensors.

    Parameters
    ----------
    is_off
        Whether recording is off at the moment.
    """

    def __init__(self, is_off: Callable[[], bool]) -> None:
        self._is_off = is_off
        self._patches = Patches()
        self._local = _Local()
        after_import(_MODULE, self._begin)

    def _begin(self) -> None:
        mixin = getattr(sys.modules[_MODULE], "GenerationMixin", None)
        wrappers = {
            "generate": self._generate,
            "_update_model_kwargs_for_generation": self._update,
        }
        # In a release without these, prefill and decode are not distinguished.
        if all(hasattr(mixin, name) for name in wrappers):
            for name, wrap in wrappers.items():
                self._patches.replace(mixin, name, wrap)

    def is_generating(self) -> bool:
        """Whether ``generate`` runs on this thread."""
        return self._local.generation is not None

    def stop(self) -> None:
        """Restore the functions of transformers."""
        cancel(_MODULE, self._begin)
        self._patches.restore()

    def _generate(self, original: Callable[..., Any]) -> Callable[..., Any]:
        local, is_off = self._local, self._is_off

        def generate(model: Any, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401
            if is_off():
                return original(model, *args, **kwargs)
            outer, local.generation = local.generation, _Generation(_length(kwargs))
            try:
                return original(model, *args, **kwargs)
            finally:
                local.generation = outer
                if outer is not None:  # its step continues, in which this generation ran
                    outer.begin = token_log.now()

        return generate

    def _update(self, original: Callable[..., Any]) -> Callable[..., Any]:
        local, is_off = self._local, self._is_off

        def update(
            model: Any,  # noqa: ANN401
            outputs: Any,  # noqa: ANN401
            model_kwargs: Any,  # noqa: ANN401
            *args: Any,
            **kwargs: Any,
        ) -> object:
            generation = local.generation
            if generation is None or is_off():
                return original(model, outputs, model_kwargs, *args, **kwargs)
            with suppress(*USER_ERRORS):  # models of the user may return anything
                _log_step(generation, outputs, model_kwargs)
            result = original(model, outputs, model_kwargs, *args, **kwargs)
            with suppress(*USER_ERRORS):
                # The cache holds all tokens but the last one, which was just chosen.
                length = _length_of_sequence(outputs, result)
                if length is not None:
                    generation.cached = length - 1 if _cache_of(outputs) is not None else 0
            generation.is_decode = True
            generation.begin = token_log.now()
            return result

        return update


def _log_step(generation: _Generation, outputs: Any, model_kwargs: Any) -> None:  # noqa: ANN401
    logits = getattr(outputs, "logits", None)
    if logits is None or logits.dim() < 2:
        return
    # The logits may cover only the last token.
    kept, cache = int(logits.shape[1]), _cache_of(outputs)
    length = _length_of_sequence(outputs, model_kwargs)
    total = kept + generation.cached if length is None else length
    cached = 0 if cache is None else min(generation.cached, total)
    token_log.add(
        token_log.ended(
            generation.begin, int(logits.shape[0]), max(total - cached, kept), cached,
            _cache_bytes(cache), turn=generation.turn, decode=int(generation.is_decode),
        )
    )  # fmt: skip
    generation.cached = 0 if cache is None else total


def _length_of_sequence(outputs: Any, model_kwargs: Any) -> int | None:  # noqa: ANN401
    """Return the number of tokens that the mask or the positions cover, including cached tokens."""
    # If there is an encoder, only arguments with these names belong to the decoder.
    of_decoder = getattr(outputs, "encoder_last_hidden_state", None) is not None
    names = _WHOLE_SEQUENCE[: 2 if of_decoder else None]
    whole = next((v for v in map(model_kwargs.get, names) if hasattr(v, "shape")), None)
    return None if whole is None else int(whole.shape[-1])


def _cache_of(outputs: Any) -> Any:  # noqa: ANN401
    return next((c for c in (getattr(outputs, n, None) for n in _CACHES) if c is not None), None)


def _length(kwargs: dict[str, Any]) -> int:
    """Return the number of tokens in the cache that the user passed, without waiting for a GPU."""
    cached: object = 0
    with suppress(*USER_ERRORS):  # the model reports the error
        cached = kwargs["past_key_values"].get_seq_length()
    return cached if isinstance(cached, int) else 0


def _cache_bytes(cache: Any) -> int:  # noqa: ANN401
    """Return the size of the keys and values of a ``Cache``; `UNKNOWN` for other objects."""
    layers = getattr(cache, "layers", None)
    if not layers:
        return token_log.UNKNOWN
    tensors: list[Any] = [getattr(layer, n, None) for layer in layers for n in ("keys", "values")]
    return sum([int(tensor.nbytes) for tensor in tensors if hasattr(tensor, "nbytes")])
