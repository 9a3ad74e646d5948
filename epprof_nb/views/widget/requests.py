"""What Python answers the live widget: one function for each type of request."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from epprof_nb.analysis.by_range import by_range
from epprof_nb.views.queries.event_fields import describe
from epprof_nb.views.queries.icicle import tree
from epprof_nb.views.queries.related import related
from epprof_nb.views.queries.source import source
from epprof_nb.views.queries.tables import table
from epprof_nb.views.queries.window import Window
from epprof_nb.views.wire.payload import headline, pack_counters, pack_first, pack_window

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from epprof_nb.views.view_model import ViewModel


class Reply(NamedTuple):
    """JSON and, where columns are sent, a buffer."""

    content: dict[str, Any]
    data: bytes | None = None


def _first(prepared: ViewModel, _: Mapping[str, Any]) -> Reply:
    return Reply({}, pack_first(prepared))


def _headline(prepared: ViewModel, _: Mapping[str, Any]) -> Reply:
    return Reply({"headline": headline(prepared)})


def _window(prepared: ViewModel, request: Mapping[str, Any]) -> Reply:
    lanes = request.get("lanes")
    window = Window(
        math.floor(float(request["start"])),
        math.ceil(float(request["end"])),
        min(max(float(request["width"]), 100), 16_000),
        None if lanes is None else (int(lanes[0]), int(lanes[1])),
    )
    wanted = request.get("selection")
    lit = prepared.selections.of(wanted).lit if wanted else None
    return Reply({}, pack_window(prepared, window, lit=lit))


def _counters(prepared: ViewModel, request: Mapping[str, Any]) -> Reply:
    if "start" not in request:
        return Reply({}, pack_counters(prepared))
    window = math.floor(float(request["start"])), math.ceil(float(request["end"]))
    return Reply({}, pack_counters(prepared, window))


def _describe(prepared: ViewModel, request: Mapping[str, Any]) -> Reply:
    return Reply({"fields": describe(prepared, str(request["prefix"]), int(request["row"]))})


def _table(prepared: ViewModel, request: Mapping[str, Any]) -> Reply:
    asked = {name: request[name] for name in ("sort", "descending", "pattern") if name in request}
    return Reply({"table": table(prepared, str(request["by"]), **asked)})


def _tree(prepared: ViewModel, _: Mapping[str, Any]) -> Reply:
    return Reply({"tree": tree(prepared)})


def _source(prepared: ViewModel, _: Mapping[str, Any]) -> Reply:
    return Reply({"source": source(prepared)})


def _related(prepared: ViewModel, request: Mapping[str, Any]) -> Reply:
    window = request.get("window")
    return Reply(
        {
            "related": related(
                prepared,
                request["prefix"],
                int(request["row"]),
                None if window is None else (float(window[0]), float(window[1])),
            )
        }
    )


def _step(prepared: ViewModel, request: Mapping[str, Any]) -> Reply:
    number, at = request.get("number"), request.get("at")
    return Reply(
        prepared.selections.step(
            request["selection"],
            number=None if number is None else int(number),
            at_ns=None if at is None else float(at),
        )
    )


def _span(prepared: ViewModel, request: Mapping[str, Any]) -> Reply:
    return Reply({"span": by_range(prepared.index, int(request["start"]), int(request["end"]))})


_ANSWERS: dict[str, Callable[[ViewModel, Mapping[str, Any]], Reply]] = {
    "first": _first,
    "headline": _headline,
    "window": _window,
    "counters": _counters,
    "describe": _describe,
    "table": _table,
    "tree": _tree,
    "source": _source,
    "related": _related,
    "step": _step,
    "span": _span,
}


def answers(kind: object) -> bool:
    """Whether a message of this type is a request, to be answered."""
    return kind in _ANSWERS


def answer(prepared: ViewModel, request: Mapping[str, Any]) -> Reply:
    """Answer a request by its ``type``.

    A request that cannot be answered gets an ``error`` to show: the front end must not wait for
    what never comes.
    """
    try:
        return _ANSWERS[request["type"]](prepared, request)
    except Exception as error:  # noqa: BLE001 - told to the front end, which shows it
        return Reply({"error": f"{type(error).__name__}: {error}"})
