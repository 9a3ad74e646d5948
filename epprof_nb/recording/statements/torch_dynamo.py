"""Support for ``torch.compile``: TorchDynamo skips the markers of statements.

TorchDynamo cannot trace calls to unknown C functions: a model defined in a profiled cell would
not be compiled, and ``fullgraph=True`` would raise. The markers are therefore registered as
functions without effect. Importing TorchDynamo takes seconds, so this happens when other code
imports it.
"""

from __future__ import annotations

import contextlib
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from epprof_nb.util.after_import import after_import
from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Marker = Callable[[Any], object]

_DYNAMO = "torch._dynamo"
_lock = fork_safe_lock()
_registered = False


def register_markers(
    calls: Iterable[Marker], bodies: Iterable[Marker], same: Iterable[Marker]
) -> None:
    """Make TorchDynamo skip the markers, now or when it is imported; once per process.

    Parameters
    ----------
    calls
        Markers that are called.
    bodies
        Markers that return a context manager.
    same
        Markers that return their argument.
    """
    global _registered  # noqa: PLW0603 - process-wide state
    with _lock:
        if _registered:
            return
        _registered = True
    replacements: dict[Marker, Marker] = {
        **dict.fromkeys(calls, _nothing),
        **dict.fromkeys(bodies, _no_body),
        **dict.fromkeys(same, _same),
    }
    after_import(_DYNAMO, partial(_substitute, replacements))


def _substitute(replacements: Mapping[Marker, Marker]) -> None:
    # Available since torch 2.6.
    substitute = getattr(sys.modules[_DYNAMO], "substitute_in_graph", None)
    if substitute is not None:
        for marker, replacement in replacements.items():
            substitute(marker, skip_signature_check=True)(replacement)


def _nothing(key: int) -> None:
    """Replace a marker inside a compiled graph."""


def _same(value: Any) -> Any:  # noqa: ANN401 - as the marker
    """Replace a marker around a ``yield``."""
    return value


def _no_body(key: int) -> contextlib.nullcontext[None]:  # noqa: ARG001 - as the marker
    """Replace a marker that returns a context manager."""
    return contextlib.nullcontext()
