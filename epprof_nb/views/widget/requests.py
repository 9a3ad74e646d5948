"""Requests of the live widget: one handler per request type."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from epprof_nb.analysis.breakdowns.by_range import by_range
from epprof_nb.views.queries.event_fields import event_fields
from epprof_nb.views.queries.icicle import icicle
from epprof_nb.views.queries.memory_holders import holders_at
from epprof_nb.views.queries.related import related
from epprof_nb.views.queries.source import source_listing
from epprof_nb.views.queries.tables import breakdown_table
from epprof_nb.views.queries.window import WindowQuery
from epprof_nb.views.wire.headers import late_header
from epprof_nb.views.wire.live_messages import counters_message, first_view_message, window_message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from epprof_nb.views.queries.view_selection import Selections

_MIN_WIDTH, _MAX_WIDTH = 100, 16_000
"""Limits of the requested width, in pixels."""


class Response(NamedTuple):
    """JSON and, for columns, a binary buffer."""

    content: dict[str, Any]
    data: bytes | None = None


def _first(selections: Selections, _: Mapping[str, Any]) -> Response:
    return Response({}, first_view_message(selections.view_model, selections.initial))


def _headline(selections: Selections, _: Mapping[str, Any]) -> Response:
    return Response({"header": late_header(selections.view_model)})


def _window(selections: Selections, request: Mapping[str, Any]) -> Response:
    lanes = request.get("lanes")
    window = WindowQuery(
        *_time_range(request),
        min(max(float(request["width"]), _MIN_WIDTH), _MAX_WIDTH),
        None if lanes is None else (int(lanes[0]), int(lanes[1])),
    )
    query = request.get("selection")
    highlighted = selections.of(query).highlighted if query else None
    return Response({}, window_message(selections.view_model, window, highlighted=highlighted))


def _counters(selections: Selections, request: Mapping[str, Any]) -> Response:
    window = _time_range(request) if "start" in request else None
    return Response({}, counters_message(selections.view_model, window))


def _time_range(request: Mapping[str, Any]) -> tuple[int, int]:
    return math.floor(float(request["start"])), math.ceil(float(request["end"]))


def _event_fields(selections: Selections, request: Mapping[str, Any]) -> Response:
    fields = event_fields(selections.view_model, str(request["prefix"]), int(request["row"]))
    return Response({"fields": fields})


def _table(selections: Selections, request: Mapping[str, Any]) -> Response:
    options = {name: request[name] for name in ("sort", "descending", "pattern") if name in request}
    return Response(
        {"table": breakdown_table(selections.view_model, str(request["by"]), **options)}
    )


def _icicle(selections: Selections, request: Mapping[str, Any]) -> Response:
    return Response({"tree": icicle(selections.view_model, str(request["by"]))})


def _source(selections: Selections, _: Mapping[str, Any]) -> Response:
    return Response({"source": source_listing(selections.view_model)})


def _related(selections: Selections, request: Mapping[str, Any]) -> Response:
    window = request.get("window")
    in_view = None if window is None else (float(window[0]), float(window[1]))
    event = request["prefix"], int(request["row"])
    return Response({"related": related(selections.view_model, *event, in_view)})


def _seek(selections: Selections, request: Mapping[str, Any]) -> Response:
    number, at = request.get("number"), request.get("at")
    return Response(
        selections.of(request["selection"]).seek(
            number=None if number is None else int(number),
            at_ns=None if at is None else float(at),
        )
    )


def _by_range(selections: Selections, request: Mapping[str, Any]) -> Response:
    time_range = int(request["start"]), int(request["end"])
    return Response({"by_range": by_range(selections.view_model.index, *time_range)})


def _memory_at(selections: Selections, request: Mapping[str, Any]) -> Response:
    return Response({"holders": holders_at(selections.view_model.index, int(request["at"]))})


HANDLERS: dict[str, Callable[[Selections, Mapping[str, Any]], Response]] = {
    "first": _first,
    "headline": _headline,
    "window": _window,
    "counters": _counters,
    "describe": _event_fields,
    "table": _table,
    "tree": _icicle,
    "source": _source,
    "related": _related,
    "seek": _seek,
    "by_range": _by_range,
    "memory_at": _memory_at,
}
"""Handlers by request type."""


def is_request(kind: object) -> bool:
    """Return whether a message of this type is a request that expects a response."""
    return isinstance(kind, str) and kind in HANDLERS


def handle(selections: Selections, request: Mapping[str, Any]) -> Response:
    """Handle a request, by its ``type``, about the profile of `selections`.

    If the handler fails, the response has an ``error`` for the viewer to show, so that it does not
    wait forever.
    """
    try:
        return HANDLERS[request["type"]](selections, request)
    except Exception as error:  # noqa: BLE001 - shown by the viewer
        return Response({"error": f"{type(error).__name__}: {error}"})
