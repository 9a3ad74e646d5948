"""Parts of a demangled C++ function name."""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPEN, _CLOSE = "<([{", ">)]}"
_ANONYMOUS = "(anonymous namespace)"
_NAMESPACES = re.compile(r"(?:\b(?!const::)[A-Za-z_]\w*::|\(anonymous namespace\)::)+(?=[\w{(])")


@dataclass(frozen=True, slots=True)
class CppName:
    """A function: its name without namespaces, and its template arguments.

    Attributes
    ----------
    base
        The name, without return type, namespaces, template arguments and parameters.
    return_type
        The return type, which demangled names of templates have; otherwise empty.
    namespace
        The namespaces and classes around it, joined by ``::``; empty without any.
    arguments
        The template arguments, as written.
    """

    base: str
    return_type: str
    namespace: str
    arguments: tuple[str, ...]


def parse(text: str) -> CppName | None:
    """Return the parts of a demangled function name; None if its brackets do not match.

    Examples
    --------
    >>> parse("void at::native::(anonymous namespace)::add<float, 4>(int, float*)")
    CppName(base='add', return_type='void', namespace='at::native::(anonymous namespace)',
            arguments=('float', '4'))
    """
    depth = start = 0
    separator = template = -1  # positions of the last "::" and of its "<"
    i, end = 0, len(text)
    while i < end:
        character = text[i]
        if depth == 0:
            if text.startswith(_ANONYMOUS, i):
                i += len(_ANONYMOUS)
                continue
            if character == "(":
                end = i
                break
            if character == " ":
                start, separator, template = i + 1, -1, -1
            elif text.startswith("::", i):
                separator, template = i, -1
                i += 2
                continue
            elif character == "<":
                template = i
        step = _depth_step(text, i)
        depth += step
        if depth < 0:
            return None
        i += 1
    if depth:
        return None
    begin = start if separator < 0 else separator + 2
    outer = text[: max(start - 1, 0)], "" if separator < 0 else text[start:separator]
    if template < 0:
        return CppName(text[begin:end], *outer, ())
    inside = text[template + 1 : end].rstrip()
    if not inside.endswith(">"):
        return None
    return CppName(text[begin:template], *outer, tuple(split_arguments(inside[:-1])))


def split_arguments(text: str) -> list[str]:
    """Split template arguments at the commas that are in no bracket.

    Examples
    --------
    >>> split_arguments("float, array<char*, 2ul>, 4")
    ['float', 'array<char*, 2ul>', '4']
    """
    parts, depth, begin = [], 0, 0
    for i, character in enumerate(text):
        if character == "," and depth == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
        else:
            depth += _depth_step(text, i)
    last = text[begin:].strip()
    return [*parts, last] if last or parts else []


def without_namespaces(text: str) -> str:
    """Remove the namespaces of all names in a text.

    Examples
    --------
    >>> without_namespaces("at::native::Fill<c10::Half>, std::array<char*, 2ul>")
    'Fill<Half>, array<char*, 2ul>'
    """
    return _NAMESPACES.sub("", text)


def _depth_step(text: str, i: int) -> int:
    """Return how the character at `i` changes the depth of brackets."""
    character = text[i]
    if character in _OPEN:
        return 1
    if character in _CLOSE and not (character == ">" and text[i - 1 : i] == "-"):
        return -1
    return 0
