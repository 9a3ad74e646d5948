"""Patches of ``InferenceSession`` for sessions with our provider.

Operators of domains without a schema must be in a session's options before it loads the model,
Ctrl-C inside a kernel must reach the user, and a session that captures graphs needs buffers for its
runs. Sessions without our provider are unchanged.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.core import added_providers
from epprof_nb.core.errors import KernelError
from epprof_nb.core.ort_binding import CREATE_METHOD, PROVIDER, session_options_pointer
from epprof_nb.ep import context, cuda, registration, stream_providers, unknown_operators
from epprof_nb.ep.graphs import run_methods, runs_with_bindings, session_creation, session_graphs
from epprof_nb.ep.kernel import REGISTRY
from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from epprof_nb.ep.kernel import Kernel

_MARK = "_epprof_kernels"

CREATED: list[Callable[[Any, int], None]] = []
"""Functions to call with each new session that has our provider, and its number."""

_lock = fork_safe_lock()
_domains: dict[tuple[str, tuple[Kernel, ...]], object] = {}
_added: weakref.WeakKeyDictionary[Any, dict[str, object]] = weakref.WeakKeyDictionary()


def patch() -> None:
    """Patch ``InferenceSession``, unless it is patched."""
    import onnxruntime

    with _lock:
        for name, method in added_providers.wrappers(onnxruntime.SessionOptions).items():
            setattr(onnxruntime.SessionOptions, name, method)
        _patch(
            onnxruntime.IOBinding,
            dict.fromkeys(runs_with_bindings.METHODS, runs_with_bindings.wrap),
        )
        _patch(
            onnxruntime.InferenceSession,
            {
                CREATE_METHOD: _wrap_create,
                **{name: _interruptible(wrap) for name, wrap in run_methods.WRAPPERS.items()},
            },
        )
        run_methods.add_release(onnxruntime.InferenceSession)


def _patch(kind: type, wrappers: Mapping[str, Callable[..., Any]]) -> None:
    for name, wrap in wrappers.items():
        owner = next((c for c in kind.__mro__ if name in vars(c)), None)
        if owner is not None and not _is_patched(vars(owner)[name]):
            wrapper = wrap(vars(owner)[name])
            setattr(wrapper, _MARK, True)
            setattr(owner, name, wrapper)


def _is_patched(method: Any) -> bool:  # noqa: ANN401
    # The observer's patches may wrap ours.
    while method is not None:
        if hasattr(method, _MARK):
            return True
        method = getattr(method, "__wrapped__", None)
    return False


def _wrap_create(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def create(
        self: Any,  # noqa: ANN401
        providers: Sequence[Any] | None,
        provider_options: Sequence[Any] | None = None,
        *more: Any,
    ) -> None:
        of_ours = any((p[0] if isinstance(p, tuple) else p) == PROVIDER for p in providers or ())
        if of_ours or (not providers and _adds_no_domains(self._sess_options)):
            self._sess_options = with_domains(self._sess_options)
        try:
            if of_ours:
                registration.check_library()
            if not providers:
                registration.check_registered(self._sess_options)
            providers, provider_options = registration.with_device(providers, provider_options)
            if of_ours:
                registration.check_named()
            stream_providers.check(providers, self._sess_options)
        except KernelError:
            self.disable_fallback()  # ONNX Runtime would print the error and run on the CPU
            raise
        choosing = stream_providers.choosing(providers, self._sess_options)
        with choosing, session_creation.creating(self):
            try:
                original(self, providers, provider_options, *more)
            except Exception as error:
                by_device = not providers and _holds_ours(self._sess_options)
                if (of_ours or by_device) and (note := unknown_operators.note(str(error))):
                    error.add_note(note)
                raise
        if (number := session_creation.number_of_last()) is not None:
            for call in CREATED:
                call(self, number)

    return create


def _adds_no_domains(session_options: Any) -> bool:  # noqa: ANN401
    """Whether options may choose our provider by its name, or by a delegate for selection.

    ONNX Runtime requests the operators of a provider only if the options hold its device.
    """
    if session_options is None:
        return False
    added = added_providers.added_to(session_options)
    return PROVIDER in added.by_name or (added.has_policy and not added.providers)


def _holds_ours(session_options: Any) -> bool:  # noqa: ANN401
    if session_options is None:
        return False
    added = added_providers.added_to(session_options)
    return any(name == PROVIDER for name, _ in added.providers)


def _interruptible(wrap: Callable[..., Any]) -> Callable[..., Any]:
    def wrap_run(original: Callable[..., Any]) -> Callable[..., Any]:
        with_graphs = wrap(original)

        @functools.wraps(original)
        def run(self: Any, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401
            try:
                if getattr(self, session_graphs.ATTRIBUTE, None) is None:
                    return original(self, *args, **kwargs)
                return with_graphs(self, *args, **kwargs)
            except Exception as error:
                _native.ep_leave_stream()
                if context.take_interrupt():
                    raise KeyboardInterrupt from error
                cuda.explain(error)
                raise

        setattr(run, run_methods.BELOW, original)
        return run

    return wrap_run


def with_domains(session_options: Any) -> Any:  # noqa: ANN401
    """Return session options with the operators of all domains without a schema.

    Parameters
    ----------
    session_options
        An ``onnxruntime.SessionOptions``, which keeps the operators; None for options that end
        with the session.

    Raises
    ------
    KernelError
        If the options hold other operators of such a domain from before.
    """
    by_domain = _by_domain()
    if not by_domain:
        return session_options
    if session_options is None:
        import onnxruntime

        session_options = onnxruntime.SessionOptions()
    with _lock:
        known = _added.setdefault(session_options, {})
        for name, kernels in by_domain.items():
            domain = _domain(name, kernels)
            if known.get(name) is domain:
                continue
            if name in known:
                raise KernelError(
                    f"The operators of domain {name!r} have changed since these SessionOptions "
                    "were used, and ONNX Runtime cannot replace them. Create new SessionOptions."
                )
            _native.ep_add_domain(session_options_pointer(session_options), domain)
            known[name] = domain
    return session_options


def domains() -> tuple[object, ...]:
    """Return the domains without a schema, for sessions whose provider is chosen by device."""
    with _lock:
        return tuple(_domain(name, kernels) for name, kernels in _by_domain().items())


def _by_domain() -> dict[str, list[Kernel]]:
    found: dict[str, list[Kernel]] = {}
    for kernel in REGISTRY.of_domains_without_schema():
        found.setdefault(kernel.declaration.domain, []).append(kernel)
    return found


def _domain(name: str, kernels: list[Kernel]) -> object:
    key = (name, tuple(kernels))
    if key not in _domains:
        operators = []
        for kernel in kernels:
            operator = kernel.declaration.operator
            assert operator is not None  # noqa: S101
            optional = tuple(int(is_optional) for _, is_optional in operator.inputs)
            operators += [
                (kernel.declaration.op_type, inputs, optional, outputs, kernel)
                for inputs, outputs in operator.combinations()
            ]
        _domains[key] = _native.ep_make_domain(name, tuple(operators))
    return _domains[key]
