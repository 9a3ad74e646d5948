"""Python variables that hold device memory, and the outputs and frames that lead to arrays.

Objects are only read: no code of users runs, and nothing is allocated on a device. References to
what was found end with the search; its results are names and numbers.
"""

from __future__ import annotations

import gc
import sys
import time
import types
from collections import deque
from contextlib import suppress
from inspect import CO_OPTIMIZED
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from epprof_nb.data.out_of_memory_explanation import Holder
from epprof_nb.recording.out_of_memory.device_arrays import DeviceArrays
from epprof_nb.recording.out_of_memory.numpy_objects import has_objects, objects_of
from epprof_nb.recording.out_of_memory.own_attributes import dict_of, own_attributes
from epprof_nb.util.user_errors import USER_ERRORS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from epprof_nb.data.out_of_memory_explanation import Scope
    from epprof_nb.recording.out_of_memory.device_arrays import ArrayMemory

_SKIPPED = (
    types.ModuleType, types.CodeType, types.BuiltinFunctionType, types.FrameType,
    types.TracebackType, str, bytes, int, float,
)  # fmt: skip
_CLASS_ATTRIBUTES, _CLASS_NAME = (vars(type)[name].__get__ for name in ("__dict__", "__qualname__"))
_LIMIT_S = 1.0
"""Longest search from some roots; arrays not found by then are held by unknown objects."""
_LONGEST_KEY = 20
"""Most characters of a key that is shown."""
_MOST_NAMES = 20
"""Most names of an array that are noted."""
_TURN = 2_000
"""Objects between looks at the time, and until the next root has its turn."""
_LONGEST = 200
"""Characters of a name that no further attribute extends."""


class Root(NamedTuple):
    """A name that leads to objects: a variable, as ``"cache"``, and where it is, as text.

    The `path` has the keys of containers, as ``"['best'][0]"``; it ends at other objects.
    """

    name: str
    value: object
    scope: Scope
    where: str = ""
    path: str = ""
    is_open: bool = True

    @property
    def is_plain(self) -> bool:
        """Whether this is a variable of the notebook itself."""
        return not self.path and not self.where and self.name.isidentifier()


if TYPE_CHECKING:
    _Waiting = tuple[Root | Iterator[tuple[Root, bool] | None], str, bool]
    """An object to follow, or more objects; the kind; whether attributes extend the name."""


class Search:
    """A search for the holders of the memory of one device.

    Parameters
    ----------
    device
        Name of the device: ``"cuda:0"`` or ``"host"``.
    modules
        Names of the user's modules, whose classes are followed, with their places as in `Root`.

    Attributes
    ----------
    is_complete
        Whether the search ended before its time limit.
    addresses
        Addresses of the buffers that were found, with their bytes.
    """

    def __init__(self, device: str, modules: Mapping[str, str]) -> None:
        self._device = device
        self._modules = modules
        self._arrays = DeviceArrays()
        self._torch_types = {
            name: kind
            for path, name in (
                ("torch", "Tensor"),
                ("torch.nn", "Module"),
                ("torch.nn", "Parameter"),
                ("torch.optim", "Optimizer"),
            )
            if isinstance(kind := getattr(sys.modules.get(path), name, None), type)
        }
        self._seen: set[int] = {id(vars(m)) for m in _modules()}
        self._kept: list[object] = []  # else a later object may have the id of one that was seen
        self._holders: dict[tuple[str, str, str], Holder] = {}
        self._names: dict[int, list[Root]] = {}  # by the address of a buffer, without values
        self._ends_s = 0.0
        self._left = _TURN  # objects until the next look at the time
        self._is_late = False
        self.is_complete = True
        self.addresses: dict[int, int] = {}

    def close(self) -> None:
        """Drop all references."""
        self._kept.clear()
        self._seen.clear()

    def holders(self) -> list[Holder]:
        """Return the holders, most bytes first."""
        for holder in self._holders.values():
            names = self._names.get(holder.largest_address, [])
            if holder.buffers == 1:
                names = sorted(names, key=lambda one: not one.is_plain)
                holder.name, holder.where = names[0].name + names[0].path, names[0].where
            others = dict.fromkeys(one.name + one.path for one in names[1:])
            holder.also = tuple(name for name in others if name != holder.name)
        return sorted(self._holders.values(), key=lambda h: -h.nbytes)

    def follow(self, roots: Iterable[Root]) -> None:
        """Find the arrays of some roots, without arrays that earlier calls found.

        Arrays that objects lead to come first, then those that only the backward pass needs.
        """
        self._ends_s, self._is_late = time.monotonic() + _LIMIT_S, False
        nodes: list[tuple[Root, object]] = []
        # Roots take turns, so that one with millions of objects does not use up the time.
        turns = deque((root, self._objects(root)) for root in sorted(roots, key=self._order))
        while turns:
            root, found = turns.popleft()
            for node in found:
                if node is None:  # the end of a turn
                    turns.append((root, found))
                    break
                nodes.append((root, node))
        for root, node in nodes:
            self._graph(root, node)

    def ignore(self, *things: object) -> None:
        """Follow none of these objects."""
        self._seen.update(map(id, things))

    def arrays_among(self, objects: list[Any]) -> list[Any]:
        """Return the arrays among many objects, on any device."""
        return self._arrays.among(objects)

    def _order(self, root: Root) -> int:
        """Models, then containers and other objects, then single arrays, which may be in these."""
        if self._is_a(root.value, "Module"):
            return 0
        return 2 if self._arrays.is_array(root.value) else 1

    def _objects(self, root: Root) -> Iterator[object]:
        """Follow objects from a root and yield the nodes of backward passes that they lead to.

        None is the end of a turn: there are more objects.
        """
        waiting: list[_Waiting] = [(root, "", True)]
        while waiting:
            item, kind, extends = waiting.pop()
            if isinstance(item, Root):
                thing = item.value
                if issubclass(type(thing), _SKIPPED):
                    continue
                if id(thing) in self._seen:
                    memory = self._memory(thing) if self._arrays.is_array(thing) else None
                    if memory is not None:
                        self._add_name(memory.address, item)
                    continue
                self._seen.add(id(thing))
                self._kept.append(thing)
                if self._arrays.is_array(thing):
                    if root.name or not self._ends():
                        yield from self._array(item, kind, waiting)
                    continue
                if self._is_a(thing, "Optimizer"):
                    kind = "optimizer state"
                item = self._children(item, extends)
            if self._is_late:
                return
            found: list[tuple[Root, bool] | None] = []
            with suppress(*USER_ERRORS):  # an object that cannot be read hides no other
                found += islice(item, _TURN)
            if len(found) == _TURN:  # a container may have millions
                waiting.append((item, kind, extends))
            # Reversed, so that the first is followed first.
            waiting += [(child[0], kind, child[1]) for child in reversed(found) if child]
            if self._ends(1 + len(found)):
                return
            if self._left == _TURN:
                yield None

    def _array(self, at: Root, kind: str, waiting: list[_Waiting]) -> Iterator[object]:
        array = at.value
        is_tensor = self._is_a(array, "Tensor")
        if is_tensor and self._is_a(array, "Parameter"):
            kind = "parameters"
        self._count(at, kind)
        if not is_tensor:
            return
        try:
            torch = sys.modules["torch"]
            with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - no code of users
                node = torch.Tensor.grad_fn.__get__(array)
                gradient = torch.Tensor.grad.__get__(array) if node is None else None
        except USER_ERRORS:  # some subclasses have none
            return
        if gradient is not None:
            waiting.append((at._replace(value=gradient), "gradients", False))
        attributes = own_attributes(array).values()
        waiting += [(at._replace(value=value), kind, False) for value in attributes]
        if node is not None:
            yield node

    def _count(self, at: Root, kind: str) -> None:
        memory = self._memory(at.value)
        if memory is None:
            return
        self._add_name(memory.address, at)
        if memory.address in self.addresses:
            return
        self.addresses[memory.address] = memory.nbytes
        key = (at.name, at.where, kind)
        holder = self._holders.get(key)
        if holder is None:
            holder = self._holders[key] = Holder(at.name, at.where, kind, at.scope)
        holder.add(memory.nbytes, memory.form, memory.address)

    def _memory(self, array: object) -> ArrayMemory | None:
        """Return the memory of an array; None if it has none on the device."""
        memory = self._arrays.memory_of(array)
        if memory is None or memory.device != self._device or not memory.nbytes:
            return None
        return memory

    def _add_name(self, address: int, at: Root) -> None:
        """Note a name of an array; of others than the first, only variables of the notebook."""
        names = self._names.setdefault(address, [])
        is_variable = at.scope == "variable" and at.name and not at.where
        if not names or (is_variable and len(names) < _MOST_NAMES):
            names.append(at._replace(value=None))

    def _children(
        self,
        at: Root,
        extends: bool,  # noqa: FBT001
    ) -> Iterator[tuple[Root, bool] | None]:
        """Yield what an object leads to, and whether attributes extend the names further.

        None is one that leads nowhere.
        """
        thing = at.value
        if type(thing) is types.FunctionType:
            is_own = self._place(thing.__globals__.get("__name__")) is not None
            yield from _of_function(thing, at, is_own=is_own)
            return
        attributes: dict[str, Any] = {}
        if issubclass(type(thing), type):
            attributes = dict(_CLASS_ATTRIBUTES(thing))
            place, name = self._place(attributes.get("__module__")), _CLASS_NAME(thing)
            if place is None:
                return
            if "<locals>" not in name:  # its name leads to it, wherever it was found
                at = Root(name, thing, "variable", place)
        elif extends and self._extends_name(thing):
            attributes = own_attributes(thing)
        module = _CLASS_ATTRIBUTES(type(thing)).get("__module__")
        is_own = issubclass(type(thing), type) or self._place(module) is not None
        for name, value in attributes.items():
            is_long = len(at.name) > _LONGEST  # as in a linked list
            if not at.name or is_long or (name.startswith("_") and not is_own):
                yield at._replace(value=value, is_open=False), False
            else:
                yield at._replace(name=f"{at.name}.{name}", value=value), True
        if issubclass(type(thing), type):
            return
        named = {id(value) for value in attributes.values()}
        if attributes:
            named.add(id(dict_of(thing)))
        for child, key in _contents(thing):
            if id(child) in named or not self._leads_on(child):
                yield None
                continue
            is_open = at.is_open and bool(key) and len(at.path) < _LONGEST
            path = f"{at.path}[{key}]" if is_open else at.path
            yield at._replace(value=child, path=path, is_open=is_open), False

    def _leads_on(self, thing: object) -> bool:
        return gc.is_tracked(thing) or self._arrays.is_array(thing) or has_objects(thing)

    def _place(self, module: object) -> str | None:
        """Return the place of a module of the user by its name; None for others."""
        return self._modules.get(module) if type(module) is str else None

    def _extends_name(self, thing: object) -> bool:
        """Whether rows are of the attributes of an object, and not of the object as a whole."""
        return not (
            issubclass(type(thing), dict | list | tuple | set | frozenset | types.MethodType)
            or self._is_a(thing, "Module")
            or self._is_a(thing, "Optimizer")
        )

    def _graph(self, root: Root, node: Any) -> None:  # noqa: ANN401
        """Follow the backward pass from a node to the arrays that it has saved."""
        kind = "saved for the backward pass"
        waiting = [node]
        while waiting:
            node = waiting.pop()
            if node is None or id(node) in self._seen:
                continue
            if self._ends():
                return
            self._seen.add(id(node))
            self._kept.append(node)
            for thing in _saved(node):
                at = root._replace(value=thing)
                if self._arrays.is_array(thing):
                    self._count(at, kind)
                else:  # of a hook for saved tensors
                    waiting += filter(None, self._objects(at))
            waiting += [following for following, _ in node.next_functions]

    def _is_a(self, thing: object, name: str) -> bool:
        base = self._torch_types.get(name)
        # Unlike `issubclass` and `in`, it runs no code of metaclasses.
        return base is not None and type.__subclasscheck__(base, type(thing))

    def _ends(self, objects: int = 1) -> bool:
        """Count objects, and return whether the time is up."""
        self._left -= objects
        if self._left <= 0:
            self._left = _TURN
            if time.monotonic() > self._ends_s:
                self._is_late, self.is_complete = True, False
        return self._is_late


def frame_variables(frame: types.FrameType) -> dict[str, object]:
    """Return the local variables of a frame; {} for the code of a module, whose are global.

    Before Python 3.13, a frame keeps the dictionary that reading its variables makes, and with it
    their values even after ``frame.clear()``. They are removed, unless others have it, too; it also
    has what ``exec`` has assigned in the function, which is nowhere else.
    """
    if not frame.f_code.co_flags & CO_OPTIMIZED:
        values: dict[str, object] = frame.f_locals
        return {} if values is frame.f_globals else dict(values)
    values = frame.f_locals
    copied = dict(values)
    if isinstance(values, dict) and sys.getrefcount(values) == 3:
        code = frame.f_code
        for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
            values.pop(name, None)
    return copied


def _modules() -> list[types.ModuleType]:
    return [module for module in list(sys.modules.values()) if type(module) is types.ModuleType]


def _contents(thing: object) -> Iterator[tuple[object, str]]:
    """Yield what an object refers to, with the text of its key in a container; "" for others."""
    if type(thing) is dict:
        for key, value in list(thing.items()):
            is_short = type(key) is int and abs(key) < 10**_LONGEST_KEY
            is_short |= type(key) is str and len(key) <= _LONGEST_KEY
            yield key, ""
            yield value, repr(key) if is_short else ""
    elif type(thing) is list or type(thing) is tuple:
        yield from ((value, str(number)) for number, value in enumerate(thing))
    else:
        elements = objects_of(thing) if has_objects(thing) else ()
        yield from ((value, "") for value in chain(gc.get_referents(thing), elements))


def _of_function(
    function: types.FunctionType, at: Root, *, is_own: bool
) -> Iterator[tuple[Root, bool]]:
    """Yield what a function holds; its globals are roots of their own.

    Only the variables of the user's functions (`is_own`) have their names.
    """
    code = function.__code__
    for variable, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            value = cell.cell_contents
        except ValueError:  # empty
            continue
        where = f"in the closure of `{function.__name__}`"
        yield Root(variable, value, at.scope, where) if is_own else at._replace(value=value), True
    for value in (function.__defaults__, function.__kwdefaults__, function.__dict__):
        yield at._replace(value=value), False


def _saved(node: Any) -> Iterator[object]:  # noqa: ANN401
    """Yield the tensors that a node of a backward pass has saved, without unpacking them.

    Unpacking would run the hooks of users, which may copy to the device.
    """
    for name in dir(type(node)):
        if not name.startswith("_raw_saved_"):
            continue
        try:
            saved = getattr(node, name)
            several = saved if isinstance(saved, tuple | list) else (saved,)
            found = [one.data for one in several if one is not None]
        except USER_ERRORS:
            continue
        yield from (thing for thing in found if thing is not None)
    yield from own_attributes(node).values()
