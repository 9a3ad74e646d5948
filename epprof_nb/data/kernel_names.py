"""Short names of kernels, with the details that distinguish similar ones.

The short name has no return type, namespaces, template arguments and parameters. The details
(operation, dtype, tile) follow in brackets. The rules and their examples are in
`epprof_nb.data.kernel_name_rules`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from epprof_nb.data.kernel_name_rules import (
    DTYPES,
    IGNORED_CLASSES,
    LIBRARY_KERNELS,
    LIBRARY_NAMESPACES,
    NAMES,
    OPERATION_WORDS,
    OPERATIONS,
)
from epprof_nb.util.cpp_names import CppName, parse, without_namespaces

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.data.kernel_name_rules import Rule

_MAX_LENGTH = 20_000
"""Longer names are left unchanged."""
_MAX_DETAILS = 72
"""Maximum length of the text in brackets."""

_NAMES = [(re.compile(rule.pattern), rule) for rule in NAMES]
_OPERATIONS = [(re.compile(rule.pattern), rule) for rule in OPERATIONS]
_LAMBDA = re.compile(r"\{lambda\(([A-Za-z_][^,)]*)")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_LIBRARY_KERNELS = re.compile(LIBRARY_KERNELS)
_INTEGER_DTYPES = {"i32", "i64", "u32", "u64"}


@lru_cache(maxsize=4096)
def short_name(name: str) -> str:
    """Return the short name of a kernel; a name that matches no rule is returned unchanged.

    Examples
    --------
    >>> short_name("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
    ...            "at::native::MeanOps<float, float, float, float>, unsigned int> >(int)")
    'reduce_kernel [mean f32]'
    >>> short_name("nvjet_sm90_tst_64x64_64x13_2x1_v_bz_splitK_TNT")
    'nvjet_sm90 64x64x13 TNT [bf16 splitK]'
    >>> short_name("my_kernel")
    'my_kernel'
    """
    if len(name) > _MAX_LENGTH:
        return name
    for pattern, rule in _NAMES:
        match = pattern.match(name)
        if match:
            return _fill(rule, match.groupdict())
    function = parse(name)
    if function is None or not function.base.isidentifier():
        return name
    if function.return_type and not function.arguments:
        return name  # only names of templates have a return type: this is not a C++ function
    return _with_details(function.base, _details(function))


def _details(function: CppName) -> str:
    """Return the operation and dtypes of an instance of a C++ template."""
    if not function.arguments:
        return ""
    text = without_namespaces(", ".join(function.arguments))
    for pattern, rule in _OPERATIONS:
        match = pattern.search(text)
        if match:
            groups = match.groupdict()
            if not groups.get("dtype"):
                captured = _LAMBDA.search(text, match.start())
                groups["dtype"] = captured[1] if captured else ""
            return _fill(rule, groups)
    is_library = function.namespace.startswith(LIBRARY_NAMESPACES) or _LIBRARY_KERNELS.match(
        function.base
    )
    return _arguments(function.arguments, with_values=not is_library)


def _arguments(arguments: tuple[str, ...], *, with_values: bool) -> str:
    """Return the dtypes and classes among template arguments.

    Parameters
    ----------
    arguments
        The arguments.
    with_values
        Whether to keep all values. Otherwise each dtype and class is listed once, without the
        integers, flags and dtypes of indices, which are details of a library's implementation.
    """
    words: list[str] = []
    for argument in arguments:
        word = _word(without_namespaces(argument))
        is_value = not _IDENTIFIER.match(word) or word in ("true", "false")
        if word and (with_values or not (is_value or word in IGNORED_CLASSES)):
            words.append(word)
    if not with_values and any(word in DTYPES.values() for word in words):
        words = [word for word in words if word not in _INTEGER_DTYPES] or words
    return " ".join(words if with_values else dict.fromkeys(words))


def _word(argument: str) -> str:
    """Return a template argument in one word: a dtype, the name of a class, or a value."""
    text = argument.removesuffix(" const").rstrip("*& ").removesuffix(" const")
    if text in DTYPES:
        return DTYPES[text]
    if text[:1] == "(":  # a value of an enumeration: (SortOrder)0
        return text.partition(")")[2]
    if text[:1] == "&":  # a function
        return ""
    name = _IDENTIFIER.match(text)
    return name[0] if name else re.sub(r"(?<=\d)[uUlL]+$", "", text)


def _fill(rule: Rule, groups: Mapping[str, str | None]) -> str:
    """Return the label of a rule, filled with the groups of its match."""
    values = {name: _value(name, value or "") for name, value in groups.items()}
    text = re.sub(r"\s+", " ", rule.label.format(**values)).strip()
    text = re.sub(r"\b(\w+)->\1(?!\w)", r"\1", text)
    return text.replace("[ ", "[").replace(" ]", "]").removesuffix("[]").strip()


def _value(group: str, value: str) -> str:
    if group.startswith("dtype"):
        return DTYPES.get(without_namespaces(value).removesuffix(" const"), value)
    if group == "operation":
        word = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", value).lower().strip("_")
        return OPERATION_WORDS.get(word, word)
    if group == "flags":
        return value.replace("_", " ")
    if group == "tile":
        return value.replace("_", "x").replace(", ", "x")
    if group == "ops":
        ops = value.strip("_")
        return ops if len(ops) <= _MAX_DETAILS else f"{ops[:_MAX_DETAILS]}…"
    return value


def _with_details(base: str, details: str) -> str:
    if len(details) > _MAX_DETAILS:
        details = f"{details[:_MAX_DETAILS].rstrip()}…"
    return f"{base} [{details}]" if details else base
