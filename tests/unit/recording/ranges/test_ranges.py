"""Ranges as context managers and decorators."""

from __future__ import annotations

import asyncio
import functools
import inspect
import linecache

import pytest

import epprof_nb
from epprof_nb import host
from epprof_nb.recording.ranges.ranges import op
from tests.helpers.recorded_ops import drained, recording


def test_ranges_nest():
    with recording():
        with op("outer"), op("inner", layer=3) as inner:
            assert inner.name == "inner"
            assert inner.args == {"layer": 3}
        assert [(r.name, r.parent) for r in drained()] == [("outer", None), ("inner", "outer")]


def test_a_function_runs_in_a_range_of_its_own_each_time():
    @op("fact", kind="test")
    def fact(n: int = 1) -> int:
        """Doc."""
        return 1 if n < 2 else n * fact(n - 1)

    assert fact(3) == 6  # nothing records: nothing happens
    assert (fact.__name__, fact.__doc__) == ("fact", "Doc.")
    assert inspect.signature(fact) == inspect.signature(fact.__wrapped__)
    with recording():
        assert fact(3) == 6
        assert [(r.name, r.parent) for r in drained()] == [
            ("fact", None),
            ("fact", "fact"),
            ("fact", "fact"),
        ]


def test_an_error_ends_the_range():
    @op("fails")
    def fails():
        raise KeyError("k")

    with recording():
        with pytest.raises(KeyError):
            fails()
        assert [r.flags for r in drained()] == [0]


def test_methods_static_and_class_methods():
    class A:
        @op("method")
        def method(self):
            return self

        @op("outside")
        @staticmethod
        def outside(x):
            return x

        @staticmethod
        @op("inside")
        def inside(x):
            return x

        @op("class")
        @classmethod
        def make(cls):
            return cls

        @property
        @op("property")
        def value(self):
            return 4

    a = A()
    with recording():
        assert a.method() is a
        assert a.outside(1) == A.outside(1) == a.inside(1) == 1
        assert a.make() is A.make() is A
        assert a.value == 4
        assert [r.name for r in drained()] == [
            "method", "outside", "outside", "inside", "class", "class", "property"
        ]  # fmt: skip


def test_generator_function():
    log = []

    @op("gen")
    def gen(n):
        try:
            for _ in range(n):
                try:
                    log.append((yield n))
                except KeyError:
                    log.append("key")
        finally:
            log.append("closed")
        return "value"

    def use():
        return (yield from gen(2))

    assert inspect.isgeneratorfunction(gen)
    with recording():
        it = use()
        assert next(it) == 2
        assert it.send("a") == 2
        with pytest.raises(StopIteration) as stop:
            it.throw(KeyError())
        assert stop.value.value == "value"
        it = gen(1)
        next(it)
        it.close()
        rows = drained()
    assert log == ["a", "key", "closed", "closed"]
    assert [r.name for r in rows] == ["gen", "gen"]
    assert all(r.flags == 0 and r.suspended_ns > 0 for r in rows)


def test_coroutine_function():
    @op("co")
    async def co(x):
        await asyncio.sleep(0.002)
        return x

    async def main():
        return await asyncio.gather(co(1), co(2))

    assert inspect.iscoroutinefunction(co)
    with recording():
        assert asyncio.run(main()) == [1, 2]
        rows = drained()
    assert [(r.name, r.parent, r.flags) for r in rows] == [("co", None, 0)] * 2
    assert all(r.suspended_ns > 1_000_000 for r in rows)


def test_asynchronous_generator_function():
    log = []

    @op("agen")
    async def agen():
        try:
            while True:
                try:
                    log.append((yield len(log)))
                except KeyError:
                    log.append("key")
                await asyncio.sleep(0)
        finally:
            log.append("closed")

    async def finite():
        for i in range(2):
            yield i

    async def main():
        it = agen()
        assert await anext(it) == 0
        assert await it.asend("a") == 1
        assert await it.athrow(KeyError()) == 2
        await it.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(it)
        it = agen()
        await anext(it)
        with pytest.raises(ValueError, match="v"):
            await it.athrow(ValueError("v"))
        assert [i async for i in op("finite")(finite)()] == [0, 1]

    assert inspect.isasyncgenfunction(agen)
    with recording():
        asyncio.run(main())
        rows = drained()
    assert log == ["a", "key", "closed", "closed"]
    assert [(r.name, r.flags) for r in rows] == [("agen", 0), ("agen", 0), ("finite", 0)]


def test_other_callables():
    class Model:
        def __call__(self, x):
            return x + 1

    with recording():
        assert op("model")(Model())(1) == 2
        assert op("partial")(functools.partial(max, 3))(4) == 4
        assert op("builtin")(len)("ab") == 2
        assert [r.name for r in drained()] == ["model", "partial", "builtin"]


@pytest.mark.parametrize(
    ("thing", "said"), [(dict, "a class"), (property(len), "a property"), (3, "a int")]
)
def test_what_cannot_run_in_a_range_is_refused(thing, said):
    with pytest.raises(TypeError, match=said):
        op("x")(thing)


def test_an_op_without_parentheses_has_the_name_of_the_function():
    @op
    def plain(x):
        """Doc."""
        return x + 1

    @op
    async def waits():
        await asyncio.sleep(0)
        return 2

    @op
    def generates():
        yield 3

    @op
    async def streams():
        yield 4

    async def collect():
        return [await waits(), *[item async for item in streams()]]

    assert plain.__doc__ == "Doc."
    assert inspect.iscoroutinefunction(waits)
    assert inspect.isgeneratorfunction(generates)
    assert inspect.isasyncgenfunction(streams)
    with recording():
        assert plain(1) == 2
        assert asyncio.run(collect()) == [2, 4]
        assert list(generates()) == [3]
        assert [r.name for r in drained()] == ["plain", "waits", "streams", "generates"]


def test_a_method_below_an_op_without_parentheses_has_the_name_of_its_class_too():
    class Model:
        @op
        def forward(self):
            return 1

        @op
        @staticmethod
        def below():
            return 2

        @classmethod
        @op
        def above(cls):
            return cls

        @property
        @op
        def size(self):
            return 4

    with recording():
        model = Model()
        assert (model.forward(), model.below(), model.above(), model.size) == (1, 2, Model, 4)
        assert [r.name for r in drained()] == [
            "Model.forward", "Model.below", "Model.above", "Model.size",
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (dict, "@op was applied to a class"),
        (property(len), "@op was applied to a property"),
        (functools.partial(len), r'has no name. Name the op: @op\("name"\)'),
        (3, "must be a str, not 3"),
    ],
)
def test_an_op_without_parentheses_refuses_what_is_no_function(thing, said):
    with pytest.raises(TypeError, match=said):
        op(thing)


def test_arguments_need_a_name():
    with pytest.raises(TypeError, match="must be a str"):
        op(len, layer=3)


def test_a_function_whose_file_cannot_be_read_keeps_the_profile(monkeypatch):
    @epprof_nb.op("unreadable")
    def launch():
        host.launch(int)

    with monkeypatch.context() as patched, epprof_nb.profile() as prof:
        launch()
        patched.setitem(linecache.cache, __file__, None)
    assert "unreadable" in prof.ops["name"].tolist()
    assert "unreadable" not in prof.info.get("op_places", {})
