"""Explanations in programs with unusual names, modules, classes and streams."""

from __future__ import annotations

import abc
import asyncio
import contextlib
import contextvars
import gc
import importlib
import io
import itertools
import sys
import threading
import types
import weakref
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import epprof_nb
from epprof_nb import host
from epprof_nb.recording.out_of_memory import explain_error, torch_failures, variables
from epprof_nb.recording.out_of_memory.device_arrays import DeviceArrays
from epprof_nb.recording.out_of_memory.explain_error import explain
from epprof_nb.recording.out_of_memory.recognize_errors import allocation_error, requested_bytes
from epprof_nb.recording.out_of_memory.traceback_lines import frames_of, users_frames


@pytest.fixture(autouse=True)
def limit():
    """At most 1 MB more than other tests have left on the host device."""
    gc.collect()
    before = host.memory_info()
    host.set_memory_limit(before.used + 1_000_000)
    yield
    host.set_memory_limit(before.limit)


def ask():
    host.empty(2_000_000, "u1")


def explained(variables):
    with pytest.raises(MemoryError) as raised:
        ask()
    return explain(raised.value, variables)


def names(variables):
    """The names of the holders in the explanation of an error."""
    return {holder.name for holder in explained(variables).holders}


class _NoHash(type):
    __hash__ = None

    def __eq__(cls, other):
        return cls is other


class _NoAttributes(type):
    def __getattribute__(cls, name):
        raise RuntimeError(name)


class _Name(str):
    __slots__ = ()

    def __format__(self, _):
        raise RuntimeError

    __str__ = startswith = __format__
    __hash__ = str.__hash__


class _Plain:
    pass


def test_one_object_that_cannot_be_read_hides_no_other():
    holder = _Plain()
    holder.array = host.empty(10)
    vars(holder)[_Name("other")] = 1
    variables = {
        1: 2,
        _Name("name"): 3,
        "without_hash": _NoHash("A", (), {})(),
        "hostile": _NoAttributes("B", (), {}),
        "hostile_object": _NoAttributes("C", (), {})(),
        "holder": holder,
    }
    assert "holder.array" in names(variables)


OWN_MODULE = """
import functools
from epprof_nb import host

class Model:
    cache = {}
    class Inner:
        kept = [host.empty(1001)]

    def __init__(self):
        Model.cache[0] = host.empty(1002)

model = [Model()]

def remembering(function):
    seen = []
    @functools.wraps(function)
    def call():
        seen.append(host.empty(1003))
    return call

@remembering
def remembered():
    pass

remembered()
"""


def test_classes_and_closures_of_modules_have_their_names(tmp_path, monkeypatch):
    (tmp_path / "own_module.py").write_text(OWN_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_module", raising=False)
    own = importlib.import_module("own_module")
    try:
        # The instance leads to the class, too, which has a name of its own all the same.
        found = {
            holder.nbytes: (holder.name, holder.where, holder.scope)
            for holder in explained({"first": [own.Model()]}).holders
        }
    finally:
        del sys.modules["own_module"]
    assert found[4004] == ("Model.Inner.kept[0]", "in `own_module.py`", "variable")
    assert found[4008] == ("Model.cache[0]", "in `own_module.py`", "variable")
    assert found[4012] == ("seen[0]", "in the closure of `remembered`", "variable")


def in_a_task_of_another_thread(started, end, body):
    """Run a coroutine function on another thread until `end` is set."""

    async def work():
        await asyncio.sleep(0)
        kept = body()
        started.set()
        while not end.is_set():
            await asyncio.sleep(0.001)
        del kept

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    assert started.wait(60)
    return thread


def test_values_of_context_variables_have_their_names():
    current, end = contextvars.ContextVar("current"), threading.Event()
    thread = in_a_task_of_another_thread(
        threading.Event(), end, lambda: current.set([host.empty(20)]) and None
    )
    current.set({"array": host.empty(10)})
    try:
        found = explained({"current": current}).holders
    finally:
        current.set(None)
        end.set()
        thread.join()
    holders = [(holder.name, holder.nbytes, holder.where) for holder in found]
    assert ("current", 120, "value of a `ContextVar`") in holders, holders


def test_variables_of_a_coroutine_that_waits_have_their_names():
    end = threading.Event()
    thread = in_a_task_of_another_thread(threading.Event(), end, lambda: host.empty(20))
    try:
        found = explained({}).holders
    finally:
        end.set()
        thread.join()
    (where,) = (holder.where for holder in found if holder.name == "kept")
    assert where.startswith("in `work` (")


def test_what_a_finalizer_keeps_has_its_name():
    def release(array, more=None):
        del array, more

    class Closes:
        def __init__(self, array):
            self.array = array

        def __call__(self):
            del self.array

    class Owner:
        pass

    owner = Owner()
    ended = [
        weakref.finalize(owner, release, host.empty(10), more=host.empty(20)),
        weakref.finalize(owner, Closes(host.empty(30))),
    ]
    found = explained({}).holders
    assert {
        (holder.name.rpartition(".")[2], holder.nbytes, holder.where)
        for holder in found
        if "finalize" in holder.where
    } == {
        ("release", 120, "kept by `weakref.finalize`"),
        ("array", 120, "kept by `weakref.finalize`"),
    }
    assert [one.detach() is not None for one in ended] == [True, True]


def test_arrays_in_objects_of_libraries_have_the_name_of_the_variable():
    stack = contextlib.ExitStack()
    stack.callback(print, host.empty(1001))
    series = pd.Series([host.empty(1002), "text"])
    column = np.empty((1, 2), object)
    column[0, 1] = host.empty(1003)
    held = {"stack": stack, "column": column, "series": series}
    found = {holder.nbytes: holder.name for holder in explained(held).holders}
    stack.pop_all()
    assert (found[4004], found[4008], found[4012]) == ("stack", "series", "column")


def structured():
    made = np.zeros((2, 1), [("number", "f8"), ("inner", [("objects", object, 2)])])
    made["inner"]["objects"][1, 0, 1] = host.empty(1001)
    return made


def in_array():
    made = np.empty(2, object)
    made[0] = host.empty(1001)
    return made


@pytest.mark.parametrize(
    "make",
    [
        lambda: types.MappingProxyType({"key": host.empty(1001)}),
        structured,
        lambda: structured().view(np.recarray),
        lambda: in_array().view(type("Odd", (np.ndarray,), {"dtype": 1, "flat": ()})),
        lambda: np.ma.masked_array(in_array(), [True, False]),
        lambda: in_array()[1:],
        lambda: in_array()[:1].reshape(()),
        lambda: np.broadcast_to(in_array(), (10**12, 2)),
    ],
)
def test_arrays_in_unusual_containers_have_the_name_of_the_variable(make):
    made = explained({"kept": make()})
    assert made.is_complete
    assert {holder.nbytes: holder.name for holder in made.holders}[4004] == "kept"


def test_what_was_released_with_the_error_is_known():
    with pytest.raises(MemoryError) as raised:
        [host.empty(50_000) for _ in range(100)]
    made = explain(raised.value, {})
    assert made.released >= 4 * 200_000
    assert sum(pool.in_use for pool in made.pools) >= made.released


def test_modules_are_read_without_their_code(monkeypatch):
    class Lazy:
        def __getattr__(self, name):
            raise RuntimeError(name)

    asked = []
    module = types.ModuleType("odd")
    module.__getattr__ = asked.append
    named = types.ModuleType("nameless")
    del named.__name__
    vars(named).update(
        {5: 6, "__file__": str(Path("nameless.py").absolute()), "kept": host.empty(10)}
    )
    for name, value in (("lazy", Lazy()), ("odd", module), ("nameless", named)):
        monkeypatch.setitem(sys.modules, name, value)
    assert "kept" in names({})
    assert not asked


def test_a_module_that_only_has_the_name_of_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    kept = [host.empty(10)]
    assert "kept[0]" in names({"kept": kept})


@pytest.mark.parametrize("name", ["__cause__", "__context__", "__suppress_context__", "__str__"])
def test_code_of_an_exception_does_not_replace_it(name):
    def fail(_):
        raise SystemExit(name)

    kind = type("Odd", (Exception,), {name: fail if name == "__str__" else property(fail)})
    with pytest.raises(kind), epprof_nb.profile():
        raise kind("odd")


def test_a_class_without_the_name_of_its_module():
    error = type("Odd", (Exception,), {"__module__": 5})("CUDA out of memory")
    assert allocation_error(error).library == ""


@pytest.mark.parametrize("size", ["9" * 400 + " GiB", "9" * 5000 + " bytes", "1e999"])
def test_sizes_and_devices_that_cannot_be(size):
    message = f"CUDA out of memory. Tried to allocate {size}. GPU {'9' * 5000} is full"
    found = allocation_error(RuntimeError(message))
    assert found.device is None
    assert found.requested in (None, 1)
    assert requested_bytes(f"Tried to allocate {2**62} bytes") == 2**62


class _Full(io.TextIOBase):
    def write(self, _):
        raise OSError(28, "No space left on device")


def test_the_error_is_that_of_the_program_wherever_stderr_leads(monkeypatch):
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed, _Full()):
        monkeypatch.setattr(sys, "stderr", stream)
        with pytest.raises(MemoryError, match="host device"), epprof_nb.profile():
            ask()


def test_stderr_without_the_characters_of_a_name(monkeypatch):
    # A notebook of another test in this process would explain the error itself.
    monkeypatch.setattr(torch_failures, "_OBSERVER", torch_failures._Observer())
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(raw, "ascii", write_through=True))
    monkeypatch.setattr(sys.modules["__main__"], "gr\xf6\xdfe", host.empty(10), raising=False)
    with pytest.raises(MemoryError), epprof_nb.profile():
        ask()
    assert b"gr\\xf6\\xdfe" in raw.getvalue()


@pytest.mark.parametrize("name", ["__mro__", "__module__", "__name__"])
def test_code_of_a_metaclass_does_not_replace_the_error(name):
    class Meta(type):
        def __getattribute__(cls, asked):
            if asked == name:
                raise SystemExit(7)
            return super().__getattribute__(asked)

    error = Meta("Odd", (RuntimeError,), {"__module__": "torch"})("CUDA out of memory")
    assert allocation_error(error).library == "torch"
    outer = Meta("Outer", (RuntimeError,), {})("no")
    outer.__cause__ = error
    assert explain(outer, failures_before=0).raised_as == "Outer"


def test_the_asking_line_is_not_one_of_a_compiled_library():
    """Code that Cython compiled names its source in the folder in which it was built."""
    library = {
        "__name__": "lib.memory",
        "__file__": "/site-packages/lib/memory.abi3.so",
        "ask": ask,
    }
    exec(compile("def alloc(): ask()", "lib/memory.pyx", "exec"), library)
    with pytest.raises(MemoryError) as raised:
        library["alloc"]()
    frames = frames_of(raised.value.__traceback__)
    assert "lib/memory.pyx" in [frame.f_code.co_filename for frame, _ in frames]
    users = users_frames(frames, __file__)
    assert {frame.f_code.co_filename for frame, _ in users} == {__file__}


def test_variables_that_exec_makes_in_functions_stay():
    def waits():
        exec("kept = 1")
        yield
        yield eval("kept")

    def runs():
        exec("hidden = 5")
        taken = locals()
        taken["extra"] = 7
        explained({})
        return eval("hidden"), taken["extra"]

    waiting = waits()
    next(waiting)
    assert runs() == (5, 7)
    assert next(waiting) == 1


def test_an_explanation_keeps_no_variable_of_a_function():
    class Value:
        pass

    def waits():
        value = Value()
        released = weakref.ref(value)
        yield
        del value
        yield released() is None

    waiting = waits()
    next(waiting)
    explained({})
    assert next(waiting)


def interrupt(*_):
    raise KeyboardInterrupt


def test_attributes_are_read_without_properties_of_their_dictionary(monkeypatch):
    proxy = type("Proxy", (), {"__dict__": property(interrupt)})()
    lazy = type("Lazy", (types.ModuleType,), {"__dict__": property(interrupt)})("lazy")
    object.__setattr__(lazy, "__file__", str(Path("lazy.py").absolute()))
    object.__setattr__(lazy, "kept", host.empty(1001))
    inner = type("Inner", (_Plain,), {"__dict__": property(interrupt)})()
    inner.kept = host.empty(1002)
    proxy.kept = host.empty(1003)
    monkeypatch.setitem(sys.modules, "lazy", lazy)
    monkeypatch.setitem(sys.modules, "proxy", proxy)
    found = explained({"inner": inner, "proxy": proxy}).holders
    assert {holder.nbytes: holder.name for holder in found if 4004 <= holder.nbytes <= 4012} == {
        4004: "kept", 4008: "inner.kept", 4012: "proxy",
    }  # fmt: skip


def test_an_explanation_that_fails_leaves_the_error_of_the_program(monkeypatch, capsys):
    # A notebook of another test in this process would explain the error itself.
    monkeypatch.setattr(torch_failures, "_OBSERVER", torch_failures._Observer())
    monkeypatch.setattr(explain_error, "_explained", interrupt)
    with pytest.raises(MemoryError, match="host device"), epprof_nb.profile():
        ask()
    assert "could not be explained (KeyboardInterrupt)." in capsys.readouterr().err


def test_members_that_subclasses_of_arrays_replace_are_those_of_the_device():
    names = ("shape", "dtype", "nbytes", "address")
    replaced = {name: property(interrupt) for name in names}
    data = np.zeros(1001, "f4").view(type("Data", (np.ndarray,), replaced))
    odd = object.__new__(type("Odd", (host.Array,), replaced))
    host.Array._data.__set__(odd, data)
    host.Array.address.__set__(odd, 2**40)
    holders = {holder.name: holder.nbytes for holder in explained({"odd": odd}).holders}
    assert holders["odd"] == 4004


@pytest.mark.parametrize("kind", [list, dict.fromkeys, np.array])
def test_a_container_of_many_objects_ends_with_the_time(monkeypatch, kind):
    looks, asked = itertools.count(step=1_000), itertools.count()
    monkeypatch.setattr(variables, "time", types.SimpleNamespace(monotonic=lambda: next(looks)))

    def is_tracked(thing):
        next(asked)
        return gc.is_tracked(thing)

    counting = types.SimpleNamespace(get_referents=gc.get_referents, is_tracked=is_tracked)
    monkeypatch.setattr(variables, "gc", counting)
    things = [_Plain() for _ in range(100_000)]
    search = variables.Search("host", {})
    search.follow([variables.Root("many", kind(things), "variable")])
    assert not search.is_complete
    assert next(asked) < 10_000


def test_arrays_whose_class_is_only_registered_are_found(monkeypatch):
    jax = types.ModuleType("jax")
    jax.Array = abc.ABCMeta("Array", (), {"__module__": "jax"})
    impl = jax.Array.register(type("ArrayImpl", (), {}))
    monkeypatch.setitem(sys.modules, "jax", jax)
    made, of_host = impl(), host.empty(10)
    arrays = DeviceArrays()
    assert arrays.is_array(made)
    found = arrays.among([*gc.get_objects(), impl])
    assert any(one is made for one in found)
    assert any(one is of_host for one in found)
