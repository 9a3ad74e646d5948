"""The modules behind the lines of code that TorchInductor has generated."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Paths = frozenset[tuple[str, ...]]
"""Modules of a kernel, each as the paths of its enclosing modules and its own, outermost first.

A path is an expression of TorchDynamo, such as ``L['self'].layers.0``."""
_SUFFIX = ".epprof.json"
_FORMAT = 1
_COMMENT = re.compile(r"\s+# .*Source Nodes: \[.*\], Original ATen: \[")
_CALL = re.compile(r"\s+(?:\w+ = )?(\w+)\(")


class Kernel(NamedTuple):
    """A kernel with generated code.

    Attributes
    ----------
    key
        The comment above its call; its name if there is none.
    modules
        Its modules.
    """

    key: str
    modules: Paths


@dataclass(frozen=True, eq=False)
class CompiledCode:
    """The modules behind the lines of one file.

    Attributes
    ----------
    kind
        ``forward``, ``backward``, or ``inference`` for a forward pass without a backward pass.
    modules
        By number of a line that calls a kernel or is the comment above the call. None if the
        modules of this kernel are unknown.
    """

    kind: str
    modules: dict[int, Paths | None]


def is_comment(line: str) -> bool:
    """Whether a line is the comment above a kernel call, which lists the kernel's nodes."""
    return _COMMENT.match(f" {line}") is not None


def modules_of_lines(source: str, kernels: Sequence[Kernel]) -> dict[int, Paths | None]:
    r"""Return the modules of each line that calls a kernel or is the comment above the call.

    The calls are in the order in which the kernels were generated, except where the code has
    several functions. In that case, kernels with the same key have modules only if these agree.

    Parameters
    ----------
    source
        The generated code.
    kernels
        Its kernels, in the order in which they were generated.

    Examples
    --------
    >>> kernel = Kernel("fused_add_0", frozenset([("model.norm",)]))
    >>> modules_of_lines("def call(args):\n    fused_add_0(args)\n", [kernel])
    {2: frozenset({('model.norm',)})}
    """
    names = {kernel.key for kernel in kernels}
    keys = []
    for number, line in enumerate(source.splitlines(), 1):
        if _COMMENT.match(line):
            keys.append((number, line.strip()))
        elif (call := _CALL.match(line)) and call[1] in names:
            keys.append((number, call[1]))
    if [key for _, key in keys] == [kernel.key for kernel in kernels]:
        return {n: kernel.modules for (n, _), kernel in zip(keys, kernels, strict=True)}
    of_key: dict[str, set[Paths]] = {}
    for kernel in kernels:
        of_key.setdefault(kernel.key, set()).add(kernel.modules)
    found: dict[int, Paths | None] = {}
    for number, key in keys:
        distinct = of_key.get(key, set())
        found[number] = next(iter(distinct)) if len(distinct) == 1 else None
    return found


def write(path: str, code: CompiledCode, nodes: Mapping[str, tuple[str, ...]]) -> None:
    """Store the modules for processes that find the code in torch's cache on disk.

    Parameters
    ----------
    path
        File of the code.
    code
        Its modules.
    nodes
        The modules around each node of the graph that TorchDynamo has traced, by node name.
    """
    names: dict[tuple[str, ...], list[str]] = {}
    for name, chain in nodes.items():
        names.setdefault(chain, []).append(name)
    content = {
        "format": _FORMAT,
        "kind": code.kind,
        "nodes": list(names.items()),
        "lines": {
            line: None if paths is None else sorted(map(list, paths))
            for line, paths in code.modules.items()
        },
    }
    unfinished = Path(f"{path}{_SUFFIX}.{os.getpid()}")
    with suppress(OSError):  # the profiles of this process need no file
        unfinished.write_text(json.dumps(content), encoding="utf-8")
        unfinished.replace(path + _SUFFIX)


def read(path: str, nodes: Mapping[str, tuple[str, ...]]) -> CompiledCode | None:
    """Return the modules that another process has stored; None without any for this graph.

    Models with equal graphs share generated code, even if their modules have different paths. The
    names of the nodes are equal, and map the paths of one model to the paths of the other.
    """
    try:
        content = json.loads(Path(path + _SUFFIX).read_text(encoding="utf-8"))
        return _of_this_model(content, nodes) if content["format"] == _FORMAT else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # missing or damaged
        return None


def _of_this_model(
    content: dict[str, Any], nodes: Mapping[str, tuple[str, ...]]
) -> CompiledCode | None:
    own: dict[tuple[str, ...], tuple[str, ...]] = {}
    for chain, names in content["nodes"]:
        if not all(name in nodes for name in names):
            return None
        chains = {nodes[name] for name in names}
        if len(chains) == 1:  # otherwise these nodes have several modules in this model
            own[tuple(chain)] = chains.pop()
    modules: dict[int, Paths | None] = {}
    for line, paths in content["lines"].items():
        found = [own.get(tuple(chain)) for chain in paths or [[]]]
        is_known = paths is not None and None not in found
        modules[int(line)] = frozenset(c for c in found if c is not None) if is_known else None
    return CompiledCode(content["kind"], modules)
