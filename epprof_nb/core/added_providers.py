"""Providers that users add to ``SessionOptions``, which cannot list them.

Therefore the calls of its methods are recorded. A session is observed if its options hold only
devices and named providers: the observer's device is added to them once.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(slots=True)
class AddedProviders:
    """Providers and policies added to one ``SessionOptions``.

    Attributes
    ----------
    providers
        Names and options of the execution providers, in order.
    by_name
        Names of those that were added by name, not by device.
    has_policy
        A selection policy or its delegate was set.
    is_complete
        All calls were recorded.
    has_observer
        The observer's device was added.
    """

    providers: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    by_name: set[str] = field(default_factory=set)
    has_policy: bool = False
    is_complete: bool = True
    has_observer: bool = False


_MARK = "_epprof_records_providers"
_lock = fork_safe_lock()
_added: weakref.WeakKeyDictionary[Any, AddedProviders] = weakref.WeakKeyDictionary()


def added_to(session_options: object) -> AddedProviders:
    """Return the providers and policies added to these options."""
    with _lock:
        found = _added.get(session_options)
    return found or AddedProviders(is_complete=False)


def add_observer(session_options: Any, devices: list[Any]) -> None:  # noqa: ANN401
    """Add the observer's devices to recorded options, unless they hold them."""
    with _lock:
        added = _added[session_options]
        if not added.has_observer:
            # The patched method would record this call.
            add = inspect.unwrap(type(session_options).add_provider_for_devices)
            add(session_options, devices, {})
            added.has_observer = True


def wrappers(kind: type) -> dict[str, Callable[..., None]]:
    """Return methods of ``SessionOptions`` that also record their calls, by name.

    Methods that record them already are left out.
    """

    def add_devices(
        added: AddedProviders,
        ep_devices: list[Any],
        provider_options: dict[str, str],
    ) -> None:
        added.providers.append((ep_devices[0].ep_name, dict(provider_options)))

    def add_name(added: AddedProviders, name: str, provider_options: dict[str, str]) -> None:
        added.providers.append((name, dict(provider_options)))
        added.by_name.add(name)

    def set_policy(added: AddedProviders, *_: object) -> None:
        added.has_policy = True

    recorded: dict[str, Callable[..., None]] = {
        "add_provider_for_devices": add_devices,
        "add_provider": add_name,
        "set_provider_selection_policy": set_policy,
        "set_provider_selection_policy_delegate": set_policy,
    }
    return {
        name: _recording(vars(kind)[name], record)
        for name, record in recorded.items()
        if name in vars(kind) and not hasattr(vars(kind)[name], _MARK)
    }


def _recording(original: Any, record: Callable[..., None]) -> Callable[..., None]:  # noqa: ANN401
    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        had_providers = self.has_providers()
        original.__get__(self)(*args, **kwargs)
        with _lock:
            added = _added.get(self)
            if added is None:
                added = _added[self] = AddedProviders(is_complete=not had_providers)
            # pybind11 names the parameters arg0, arg1, ...
            record(added, *args, *(kwargs[name] for name in sorted(kwargs)))

    setattr(method, _MARK, True)
    return method
