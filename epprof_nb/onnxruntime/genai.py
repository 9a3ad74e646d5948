"""Models of onnxruntime-genai, which runs them step by step with its own copy of ONNX Runtime.

Native code creates its sessions. The observer is added to a model's configuration as one more
execution provider. The steps of its generators are runs of the session.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.onnxruntime.attach import NAME
from epprof_nb.recording import token_log
from epprof_nb.recording.onnxruntime import sessions, unprofiled_runs
from epprof_nb.recording.onnxruntime.session_titles import session_title
from epprof_nb.recording.onnxruntime.sessions import NO_FILE, ObservedSession

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_STEPS = ("append_tokens", "generate_next_token", "get_logits", "set_inputs")
"""Methods of a generator that may run the model."""
_OPTION, _OFF = "enable_profiling", "0"
_PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


class GenerativeSession:
    """The session of a model; registered in place of an ``InferenceSession``."""


_calls: weakref.WeakKeyDictionary[Any, list[tuple[str, tuple[Any, ...]]]] = (
    weakref.WeakKeyDictionary()
)
"""Calls that made and changed a configuration, which cannot be copied."""
_of_model: weakref.WeakKeyDictionary[Any, GenerativeSession] = weakref.WeakKeyDictionary()
_of_generator: weakref.WeakKeyDictionary[Any, GenerativeSession] = weakref.WeakKeyDictionary()
_profiled_by_user: weakref.WeakSet[Any] = weakref.WeakSet()
_has_generated: weakref.WeakSet[Any] = weakref.WeakSet()
"""Generators whose last token the model has not processed."""
_turns: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_registered: set[str] = set()


def wrappers(module: ModuleType) -> list[tuple[Any, str, Callable[..., Any]]]:
    """Return classes of onnxruntime-genai, with names of their methods and what replaces them.

    The list is empty if the release has other classes or methods: nothing is observed then.
    """
    wrap: dict[tuple[str, str], Callable[[Any], Callable[..., Any]]] = {
        **{("Config", name): _wrap_config for name in _config_methods(module)},
        ("Model", "__init__"): functools.partial(_wrap_model, module),
        ("Generator", "__init__"): _wrap_generator,
        ("Generator", "set_runtime_option"): _wrap_option,
        **{("Generator", name): _wrap_step for name in _STEPS},
    }
    found = []
    for (kind, name), wrapper in wrap.items():
        owner = getattr(module, kind, None)
        if owner is None or name not in vars(owner):
            return []
        found.append((owner, name, wrapper(vars(owner)[name])))
    return found


def _config_methods(module: Any) -> list[str]:  # noqa: ANN401
    methods = vars(getattr(module, "Config", object)).items()
    return [
        name
        for name, method in methods
        if (name == "__init__" or not name.startswith("_"))
        and callable(method)
        and not isinstance(method, staticmethod)  # an alternative constructor
    ]


def _wrap_config(original: Callable[..., Any]) -> Callable[..., Any]:
    name = original.__name__

    @functools.wraps(original)
    def call(self: object, *args: Any) -> object:
        result = original(self, *args)
        if name == "__init__":
            _calls[self] = []
        if self in _calls:
            _calls[self].append((name, args))
        return result

    return call


def _copy(module: Any, config: Any) -> Any:  # noqa: ANN401
    """Return a copy of a configuration; None if the calls that made it are unknown."""
    if isinstance(config, str):
        return module.Config(config)
    calls = _calls.get(config) if isinstance(config, module.Config) else None
    if not calls:
        return None
    (_, args), *changes = calls
    copy = module.Config(*args)
    for name, given in changes:
        getattr(copy, name)(*given)
    return copy


def _wrap_model(module: Any, original: Callable[..., None]) -> Callable[..., None]:  # noqa: ANN401
    @functools.wraps(original)
    def make(self: object, *args: Any, **kwargs: Any) -> None:
        config = args[0] if len(args) == 1 and not kwargs else None
        path = _path(config)
        reason = _make_observed(module, original, self, config)
        number = 0
        if reason is None:
            number = _native.ort_end_session()
        else:
            original(self, *args, **kwargs)
        device = str(getattr(self, "device_type", "")).lower()
        session = _of_model[self] = GenerativeSession()
        observed_session = ObservedSession(
            session_title(path),
            number=number or None,
            reason=reason or (None if number else "onnxruntime-genai made it without the observer"),
            providers=(_PROVIDERS[device],) if device in _PROVIDERS else (),
        )
        sessions.register(session, observed_session)

    return make


def _path(config: Any) -> str | None:  # noqa: ANN401
    if isinstance(config, str):
        return config
    calls = _calls.get(config) if config is not None else None
    return str(calls[0][1][0]) if calls and calls[0][1] else None


def _make_observed(
    module: Any,  # noqa: ANN401
    original: Callable[..., None],
    model: object,
    config: Any,  # noqa: ANN401
) -> str | None:
    """Make a model with the observer; return the reason if that is impossible.

    If it was made, `_native.ort_end_session` returns the number of its session.
    """
    try:
        if not _registered:
            module.register_execution_provider_library(NAME, _native.__file__)
            _registered.add(NAME)
        own = _copy(module, config)  # the user's stays as it is
        if own is None:
            return "its Config was made before epprof_nb.onnxruntime.install(). Create both again"
        own.append_provider(NAME)
    except Exception as error:  # noqa: BLE001 - the model is made without the observer
        return f"onnxruntime-genai does not load the observer ({error})"
    _native.ort_begin_session()
    try:
        original(model, own)
    except Exception as error:  # noqa: BLE001 - the call is repeated without the observer
        _native.ort_end_session()
        return f"onnxruntime-genai did not make it with the observer ({error})"
    return None


def _wrap_generator(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def make(self: object, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        session = _of_model.get(args[0]) if args else None
        if session is not None:
            _of_generator[self] = session

    return make


def _wrap_option(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def set_runtime_option(self: object, *args: Any) -> None:
        original(self, *args)
        if args[:1] == (_OPTION,):
            (_profiled_by_user.discard if args[1] == _OFF else _profiled_by_user.add)(self)

    set_runtime_option.original = original  # type: ignore[attr-defined]  # for our own calls
    return set_runtime_option


def _wrap_step(original: Callable[..., Any]) -> Callable[..., Any]:
    name = original.__name__

    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401
        if not sessions.recording():
            return original(self, *args, **kwargs)
        session = _of_generator.get(self)
        observed = None if session is None else sessions.observed(session)
        if observed is None or observed.number is None:
            sessions.run_options_for(self if session is None else session, None)  # counts it
            return original(self, *args, **kwargs)
        before, begin = self.token_count(), token_log.now()
        result = _run_step(session, self, lambda: original(self, *args, **kwargs), _key(self, name))
        _log_tokens(self, name, begin, before)
        return result

    return step


def _log_tokens(generator: Any, step: str, begin_ns: int, before: int) -> None:  # noqa: ANN401
    """Add a step that has ended to the log of calls.

    Appended tokens are processed at once. A generated token is processed by the next step.
    """
    has_generated = generator in _has_generated
    cached = max(before - has_generated, 0)
    if step == "append_tokens":
        if has_generated or generator not in _turns:
            _turns[generator] = token_log.new_turn()
        _has_generated.discard(generator)
        tokens = generator.token_count() - cached
    elif step == "generate_next_token":
        _has_generated.add(generator)
        tokens = 1
    else:
        return
    token_log.add(
        token_log.ended(
            begin_ns, token_log.UNKNOWN, tokens, cached,
            turn=_turns.get(generator, token_log.UNKNOWN), decode=int(step != "append_tokens"),
        )
    )  # fmt: skip


def _key(generator: Any, step: str) -> object:  # noqa: ANN401
    """Input key of a step, as `epprof_nb.recording.onnxruntime.unprofiled_runs.input_key`."""
    return (((generator.token_count(),), step),)


def _run_step(
    session: object,
    generator: Any,  # noqa: ANN401
    original: Callable[[], object],
    key: object,
) -> object:
    run = sessions.begin_run(session, None, key)
    begin = unprofiled_runs.now()
    switches = (run is None or run.records_nodes) and generator not in _profiled_by_user
    switch = type(generator).set_runtime_option
    switch = getattr(switch, "original", switch)
    failed = True
    try:
        if switches:
            switch(generator, _OPTION, NO_FILE)
        result = original()
        failed = False
    finally:
        if switches:
            switch(generator, _OPTION, _OFF)
        if run is not None:
            run.end(unprofiled_runs.now() - begin, failed=failed)
    return result
