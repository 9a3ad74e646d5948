"""The arguments of ranges as bounded JSON."""

from __future__ import annotations

import json
from typing import Any

from epprof_nb.util.user_errors import USER_ERRORS

TEXT_LIMIT = 4096
_STRING_LIMIT = 1000
_REPR_LIMIT = 200
_ITEM_LIMIT = 100
_DEPTH_LIMIT = 8
_INT_BITS = 4096


def as_json(args: dict[str, object]) -> str:
    """Return the JSON object of a range's arguments, of at most `TEXT_LIMIT` characters.

    When a range opens, the native core calls this for arguments other than short numbers and
    strings. It keeps the text instead of the values. Values that JSON cannot represent become their
    shortened ``repr``. Arrays become their shape and dtype, because printing a device array would
    wait for the device inside the range.
    """
    kept: dict[str, object] = {}
    text = "{}"
    for name, value in args.items():
        try:
            kept[name[:_REPR_LIMIT]] = _plain(value, 0)
        except USER_ERRORS:  # nested too deep, or a container's own methods raised
            kept[name[:_REPR_LIMIT]] = _repr(value)
        longer = _dumps(kept)
        if len(longer) > TEXT_LIMIT:
            kept[name[:_REPR_LIMIT]] = "…"
            longer = _dumps(kept)
        if len(longer) > TEXT_LIMIT:
            break
        text = longer
    return text


def _dumps(value: object) -> str:
    return json.dumps(value, skipkeys=True)


def _plain(value: Any, depth: int) -> object:  # noqa: ANN401
    """Return a bounded copy of a value that JSON can represent.

    Raises
    ------
    RecursionError
        If the value contains itself or is nested too deep.
    """
    kind = type(value)  # `isinstance` may run code of the user
    if value is None or issubclass(kind, bool | float):
        return value
    if issubclass(kind, int):
        bits = value.bit_length()
        return value if bits <= _INT_BITS else f"<int of {bits:,} bits>"
    if issubclass(kind, str):
        return value if len(value) <= _STRING_LIMIT else value[: _STRING_LIMIT - 1] + "…"
    if issubclass(kind, dict | list | tuple) and depth == _DEPTH_LIMIT:
        raise RecursionError
    if issubclass(kind, dict):
        items = list(value.items())[:_ITEM_LIMIT]
        plain = {
            str(key)[:_REPR_LIMIT] if isinstance(key, str) else key:
            _plain(item, depth + 1)
            for key, item in items
            if key is None or isinstance(key, str | int | float)
        }  # fmt: skip
        return plain if len(value) <= _ITEM_LIMIT else plain | {"…": len(value) - _ITEM_LIMIT}
    if issubclass(kind, list | tuple):
        some = [_plain(item, depth + 1) for item in value[:_ITEM_LIMIT]]
        return some if len(value) <= _ITEM_LIMIT else [*some, "…"]
    return _text(value)


def _text(value: object) -> object:
    try:
        shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
        if isinstance(shape, tuple) and dtype is not None:
            device = getattr(value, "device", None)
            if shape == () and (device is None or str(device) == "cpu"):
                item = value.item()  # type: ignore[attr-defined]
                return item if isinstance(item, bool | int | float | str) else _repr(item)
            return f"{type(value).__name__}(shape={tuple(shape)}, dtype={dtype})"[:_REPR_LIMIT]
    except USER_ERRORS:  # an attribute of a user's object may do anything
        return _repr(value)
    return _repr(value)


def _repr(value: object) -> str:
    try:
        return repr(value)[:_REPR_LIMIT]
    except USER_ERRORS as error:  # a user's __repr__ may do anything
        return f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
