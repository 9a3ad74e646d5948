"""The arguments of ranges: kept as bounded text, never as objects."""

from __future__ import annotations

import gc
import json
import math
import weakref

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.recording.ranges.bounded_arguments import TEXT_LIMIT, as_json
from tests.helpers.recorded_ops import drained, recording


def recorded(**args):
    """The text that a range's arguments are recorded as."""
    with recording():
        with epprof_nb.op("x", **args):
            pass
        return _native.drain_ops(_native.now_ns(), open_too=True)["op_args"][-1]


class Tensor:
    shape, dtype, device = (2, 3), "float32", "cuda:0"

    def __repr__(self):
        raise AssertionError("printing a tensor waits for the device")


@pytest.mark.parametrize(
    "args",
    [
        {"i": 3, "negative": -(2**63), "large": 2**63 - 1, "huge": 2**80},
        {"flag": True, "off": False, "none": None},
        {"f": 1.5, "whole": 2.0, "tiny": 1e-300, "third": 1 / 3, "inf": -math.inf},
        {"text": "plain", "quote": 'a "b" \\ c', "control": "a\nb\x00", "unicode": "ü€😀"},
        {"nested": {"a": [1, 2.5, None, {"b": "c"}]}, "many": list(range(50))},
    ],
)
def test_json_values_keep_their_types(args):
    assert recorded(**args) == json.dumps(args)


def test_numbers_and_strings_are_written_as_python_does():
    args = {"i": 7, "f": 0.1, "s": "text", "b": True, "n": None}
    assert recorded(**args) == json.dumps(args) == as_json(args)


class Ends:
    """An object that ends the program wherever its own code runs."""

    def fail(self, *_):
        raise SystemExit(3)

    __class__ = shape = property(fail)
    __bool__ = __eq__ = __hash__ = __len__ = __repr__ = fail


class EndsAsDict(dict):
    items = Ends.fail


@pytest.mark.parametrize("make", [Ends, EndsAsDict])
def test_no_code_of_an_argument_ends_the_program(make):
    assert "whose repr raised SystemExit" in recorded(a=Ends(), b=[{"c": Ends()}])
    assert json.loads(recorded(a=make(), b=1))["b"] == 1


def test_objects_are_kept_as_text_and_freed():
    class Value:
        def __repr__(self):
            return "a value " * 1000

    value = Value()
    gone = weakref.ref(value)
    with recording():
        with epprof_nb.op("x", value=value, n=1):
            pass
        del value
        gc.collect()
        assert gone() is None
        (row,) = drained()
    assert row.payload_id == 1


def test_arrays_become_their_shape_and_scalars_their_value():
    text = recorded(t=Tensor(), a=np.zeros((2, 3), np.int8), s=np.float32(1.5), z=np.array(4))
    assert json.loads(text) == {
        "t": "Tensor(shape=(2, 3), dtype=float32)",
        "a": "ndarray(shape=(2, 3), dtype=int8)",
        "s": 1.5,
        "z": 4,
    }


def test_a_scalar_on_a_device_is_not_read():
    class Scalar(Tensor):
        shape = ()

        def item(self):
            raise AssertionError("waits for the device")

    assert json.loads(recorded(loss=Scalar())) == {"loss": "Scalar(shape=(), dtype=float32)"}


@pytest.mark.parametrize(
    "args",
    [
        {"text": "x" * 100_000},
        {"numbers": list(range(100_000))},
        {"wide": {str(i): i for i in range(100_000)}},
        {f"key {i}": "x" * 100 for i in range(1000)},
        {"name " * 10_000: 1},
        {"integer": 10**20_000},
        {"bytes": b"x" * 100_000},
    ],
)
def test_the_text_is_bounded(args):
    text = recorded(**args)
    assert isinstance(json.loads(text), dict)
    assert len(text) <= TEXT_LIMIT


def test_cycles_and_failing_objects_are_no_error():
    class Bad:
        def __repr__(self):
            raise ValueError

        def __getattr__(self, name):
            raise RuntimeError

    cycle = []
    cycle.append(cycle)
    args = json.loads(recorded(cycle=cycle, bad=Bad()))
    assert args["bad"] == "<Bad, whose repr raised ValueError>"


def test_an_op_made_once_records_its_arguments_in_each_session():
    op = epprof_nb.op("kept", layer=3)
    for _ in range(2):
        with epprof_nb.profile() as prof:
            for _ in range(3):
                with op:
                    pass
        assert prof.ops["args"].tolist() == [{"layer": 3}] * 3
        assert prof.ops["name"].tolist() == ["kept"] * 3


def test_names_of_ops_last_as_long_as_their_session():
    with recording():
        for i in range(1000):
            with epprof_nb.op(f"unique name {i}"):
                pass
        names = _native.drain_ops(_native.now_ns(), open_too=True)["op_names"]
        assert len(names) == 1001
        assert len(_native.drain_ops(_native.now_ns(), open_too=True)["op_names"]) == 1001
    with recording():
        assert len(_native.drain_ops(_native.now_ns(), open_too=True)["op_names"]) == 1
    assert "unique name 7" in names
    assert "unique name 7" not in _native.names()


def test_names_beyond_a_bound_share_one():
    with recording():
        for i in range(250_010):
            epprof_nb.op(f"n{i}").__enter__().__exit__()
        rows = drained()
    assert sum(row.name == "(other names)" for row in rows) == 10
    assert rows[5].name == "n5"
