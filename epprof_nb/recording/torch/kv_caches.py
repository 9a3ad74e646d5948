"""KV caches among the arguments and results of PyTorch's modules, and how much they hold.

Only shapes, Python's integers and integers in host memory are read. Reading a value on a device
would wait for the device.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch

from epprof_nb.recording import token_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Path = tuple[Any, ...]
"""Attributes, keys and numbers that lead from a cache to a number in it."""

_SHAPE = "shape"
_NAMES = re.compile(
    r"past|past_kvs?|past_states?|past_(key|value).*|layer_past|presents?|(.*_)?caches?"
    r"|(.*_)?kvs?|cache_params|inference_params|states?|mems"
)
"""Names of arguments and results that may be a cache."""
_OF_ENCODER = re.compile(r"(^|_)(encoder|cross)(_|$)")
_CLASS = re.compile("cache|kv", re.IGNORECASE)
_cache_classes: WeakKeyDictionary[type, bool] = WeakKeyDictionary()
_SCALARS = (bool, int, float, str)
_MIN_RANK = 3
_MAX_DEPTH = 5
_MAX_PARTS = 16
"""Parts of a result that are looked at."""
_MAX_VALUES = 5_000
"""Values of a cache that are looked at; more would slow down each call by milliseconds."""
_PLAIN = frozenset((type(None), bool, int, float, str, torch.dtype, torch.device))
"""Types of values without tensors."""


@lru_cache(maxsize=1024)
def is_name(name: object) -> bool:
    """Whether a parameter or result with this name may be a cache."""
    return isinstance(name, str) and _NAMES.fullmatch(name) is not None


def caches_in(named: Iterable[tuple[Any, Any]]) -> list[Any]:
    """Return the caches among named values, by their names and classes."""
    found = []
    for name, value in named:
        if value is None or isinstance(value, _SCALARS):
            continue
        if isinstance(value, torch.Tensor):
            is_cache = _is_large(value) and is_name(name)
        else:
            is_cache = _is_cache(value) or (is_name(name) and _may_be_cache(value))
        if is_cache and not (isinstance(name, str) and _OF_ENCODER.search(name)):
            found.append(value)
    return found


def cache_of_result(result: Any) -> Any:  # noqa: ANN401
    """Return the cache that a module returns; None if there is none."""
    return next(iter(caches_in(_named_parts(result))), None)


def _named_parts(result: Any) -> Iterable[tuple[Any, Any]]:  # noqa: ANN401
    if isinstance(result, dict):  # such as a ModelOutput of transformers
        return list(dict.items(result))
    if isinstance(result, tuple | list):
        return zip(getattr(result, "_fields", range(len(result))), result, strict=False)
    return list(getattr(result, "__dict__", {}).items())


def parts_of_result(result: Any) -> list[Any]:  # noqa: ANN401
    """Return the parts of a result that may be a cache without the name or structure of one."""
    parts = islice((value for _, value in _named_parts(result)), _MAX_PARTS)
    return [part for part in parts if isinstance(part, torch.Tensor | tuple | list | dict)]


def grown_in_result(result: Any, cache: Any, tokens: int) -> Any:  # noqa: ANN401
    """Return the part of a result that is a cache and some tokens more; None if there is none."""
    before = next(iter(tensors(cache, 1)), None)
    if before is None:
        return None
    for part in parts_of_result(result):
        now = next(iter(tensors(part, 1)), None)
        if now is None or now.dim() != before.dim() or type(part) is not type(cache):
            continue
        more = [n - m for n, m in zip(now.shape, before.shape, strict=True) if n != m]
        if more in ([], [tokens]):
            return part
    return None


def shorter_length(
    before: tuple[int, ...], now: tuple[int, ...], held: int, batches: tuple[int, int]
) -> int:
    """Return the tokens in a cache whose first tensor is one of before, or shorter.

    Parameters
    ----------
    before, now
        Shapes of the first tensor after a call, and as an argument of another one.
    held
        Number of tokens that it held.
    batches
        Number of sequences of both calls, which may differ.

    Returns
    -------
    length
        `UNKNOWN` if other axes differ.
    """
    if len(before) != len(now):
        return token_log.UNKNOWN
    differ = [pair for pair in zip(before, now, strict=True) if pair[0] != pair[1]]
    if batches in differ and batches[0] != batches[1]:
        differ.remove(batches)
    if not differ and held in before:
        return held
    if len(differ) == 1 and differ[0][0] == held > differ[0][1]:
        return differ[0][1]
    return token_log.UNKNOWN


def viewed(tensor: torch.Tensor | None) -> torch.Tensor | None:
    """Return the tensor that another one is a part of; None if it is none, or this is unknown."""
    return None if tensor is None else tensor._base  # noqa: SLF001 - there is no public name


def _is_cache(value: Any) -> bool:  # noqa: ANN401
    """Whether an object is a cache under any name: by its class, or as keys and values by layer."""
    if isinstance(value, tuple | list):
        first = next((item for item in value[:_MAX_VALUES] if item is not None), None)
        if isinstance(first, tuple | list):
            return bool(first) and all(map(_is_large, first))
        return first is not None and _is_cache_class(type(first))
    return _is_cache_class(type(value))


def _is_cache_class(kind: type) -> bool:
    known = _cache_classes.get(kind)
    if known is None:
        known = any(_CLASS.search(base.__name__) for base in kind.__mro__)
        _cache_classes[kind] = known
    return known


def _may_be_cache(value: Any) -> bool:  # noqa: ANN401
    """Whether an object under the name of a cache may be one."""
    if isinstance(value, tuple | list | dict):
        return True
    return hasattr(value, "__dict__") and not callable(value)


def _is_large(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, torch.Tensor) and value.dim() >= _MIN_RANK


def _parts(value: Any) -> Iterable[tuple[Any, Any]]:  # noqa: ANN401
    """Return the first items or attributes of a part of a cache, without the code of its class."""
    if isinstance(value, tuple | list):
        return enumerate(value)
    if not isinstance(value, dict):
        # A cache may refer to its model.
        if isinstance(value, torch.nn.Module) and not _is_cache_class(type(value)):
            return ()
        try:
            value = object.__getattribute__(value, "__dict__")
        except AttributeError:
            return ()
    return list(islice(dict.items(value), _MAX_VALUES))


def _values(cache: Any) -> Iterator[tuple[Path, Any, Any]]:  # noqa: ANN401
    """Yield what a cache contains: the path of its container, its name there, and the value.

    The cache itself has the name None. A loop over a stack: a function that calls itself by its
    closure would keep the tensors in memory until garbage is collected.
    """
    seen = set()
    todo: list[tuple[Path, Iterator[tuple[Any, Any]]]] = [((), iter([(None, cache)]))]
    left = _MAX_VALUES
    while todo:
        path, items = todo[-1]
        for name, value in items:
            yield path, name, value
            left -= 1
            if not left:
                return
            if type(value) in _PLAIN or isinstance(value, torch.Tensor):
                continue
            if len(path) <= _MAX_DEPTH and id(value) not in seen:  # a cache may contain itself
                seen.add(id(value))
                todo.append(((*path, name), iter(_parts(value))))
                break
        else:
            todo.pop()


def tensors(cache: Any, most: int | None = None) -> list[torch.Tensor]:  # noqa: ANN401
    """Return the tensors of a cache that may hold keys, values or states, or the first few."""
    found = (
        value for _, _, value in _values(cache) if type(value) not in _PLAIN and _is_large(value)
    )
    return list(islice(found, most))


def nbytes(tensors: list[torch.Tensor]) -> int:
    """Return the size of the tensors of a cache, bytes: what ``by_phase`` shows."""
    return sum(tensor.nbytes for tensor in tensors)


def numbers(cache: Any) -> dict[Path, int]:  # noqa: ANN401
    """Return the numbers in a cache that may be its length: sizes of tensors, and integers."""
    found: dict[Path, int] = {}
    for path, name, value in _values(cache):
        at = (*path, name)[1:]
        if _is_large(value):
            found.update({(*at, _SHAPE, axis): int(size) for axis, size in enumerate(value.shape)})
        elif (number := host_number(value)) is not None:
            found[at] = number
    return found


def is_size(path: Path) -> bool:
    """Whether a path leads to the size of a tensor along an axis."""
    return len(path) > 1 and path[-2] == _SHAPE


def number_at(cache: Any, path: Path) -> int | None:  # noqa: ANN401
    """Return the number at a path; None if there is none."""
    found: Any = cache
    for step in path:
        if isinstance(found, tuple | list | dict):  # a shape, too
            try:
                found = found[step]
            except LookupError:
                return None
        else:
            found = getattr(found, step, None)
    return host_number(found)


def host_number(value: Any) -> int | None:  # noqa: ANN401
    """Return an integer, also from a tensor of one in host memory; None for anything else."""
    if isinstance(value, torch.Tensor):
        if value.numel() != 1 or not is_on_host(value):
            return None
        value = host_values(value)
        while isinstance(value, list):
            (value,) = value
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def host_values(tensor: torch.Tensor) -> Any:  # noqa: ANN401
    """Return the values of a tensor in host memory as nested lists; other ways are torch's ops."""
    return tensor.tolist()


def is_on_host(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds integers in host memory."""
    return bool(tensor.is_cpu) and not is_float(tensor) and tensor.dtype != torch.bool


def is_float(tensor: torch.Tensor) -> bool:
    """Whether a tensor holds other numbers than integers."""
    return bool(tensor.is_floating_point() or tensor.is_complex())


def version(first: torch.Tensor | None) -> int:
    """Return a number that changes when a tensor is written to; `UNKNOWN` if there is none."""
    if first is None or first.is_inference():
        return token_log.UNKNOWN
    return int(first._version)  # noqa: SLF001 - there is no public name
