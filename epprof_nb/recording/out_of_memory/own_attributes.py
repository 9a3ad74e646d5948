"""Attributes of objects, read without the code of their classes and metaclasses."""

from __future__ import annotations

from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any

from epprof_nb.util.user_errors import USER_ERRORS

_BASES, _CLASS_ATTRIBUTES = (vars(type)[name].__get__ for name in ("__mro__", "__dict__"))


def dict_of(thing: object) -> dict[Any, Any] | None:
    """Return the dictionary of an object; None for one without, or whose class has replaced it.

    A proxy or a module that waits for its first use has a property ``__dict__``, which
    ``object.__getattribute__`` would call.
    """
    for kind in _BASES(type(thing)):
        found = _CLASS_ATTRIBUTES(kind).get("__dict__")
        if issubclass(type(found), GetSetDescriptorType | MemberDescriptorType):
            try:
                values = found.__get__(thing)
            except USER_ERRORS:  # of an extension
                return None
            return values if type(values) is dict else None
    return None


def own_attributes(thing: object) -> dict[str, Any]:
    """Return a copy of the attributes of an object; {} for one without a dictionary."""
    return {k: v for k, v in (dict_of(thing) or {}).items() if type(k) is str}
