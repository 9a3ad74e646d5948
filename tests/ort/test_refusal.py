"""The library refuses a runtime with unknown function tables, with an error.

A stand-in for ONNX Runtime's tables is needed here: no released runtime is wrong. Each case runs
in a process of its own, as the library remembers the runtime that loaded it.
"""

from __future__ import annotations

import ast

import pytest

from tests.ort import programs

SCRIPT = """
import ctypes, sys
from epprof_nb import _native

version, broken = sys.argv[1], sys.argv[2]
P, I64, TEXT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p
keep, said = [], []

def function(result, *arguments):
    def decorate(body):
        made = ctypes.CFUNCTYPE(result, *arguments)(body)
        keep.append(made)
        return ctypes.cast(made, P).value
    return decorate

@function(P, ctypes.c_int32, TEXT)
def create_status(code, message):
    said.append(message.decode())
    return 1

I32 = ctypes.c_int32

@function(P, I32, I32, I32, TEXT, I64, I64, P, P, ctypes.c_size_t, P)
def create_event(category, pid, tid, name, at, duration, keys, values, count, out):
    ctypes.cast(out, ctypes.POINTER(P))[0] = 7
    return None

def getter(kind, value):
    @function(P, P, P)
    def get(event, out):
        ctypes.cast(out, ctypes.POINTER(kind))[0] = value
        return None
    return get

name = ctypes.create_string_buffer(b"probe")
value = ctypes.create_string_buffer(b"Sub" if broken == "arg" else b"Add")

@function(P, P, TEXT, P)
def get_arg(event, key, out):
    ctypes.cast(out, ctypes.POINTER(P))[0] = ctypes.addressof(value)
    return None

@function(None, P)
def nothing(_):
    return None

ep = (P * 80)(*[nothing] * 80)
ep[65], ep[66] = create_event, nothing
ep[67] = getter(ctypes.c_int32, 1)
ep[68] = getter(P, ctypes.addressof(name))
ep[69] = getter(I64, 9 if broken == "time" else 1234)
ep[70] = getter(I64, 56)
ep[71] = get_arg

@function(P)
def get_ep_api():
    return None if broken == "no ep api" else ctypes.addressof(ep)

api = (P * 420)(*[nothing] * 420)
api[0] = create_status
api[317] = get_ep_api

@function(P, ctypes.c_uint32)
def get_api(asked):
    said.append(f"asked {asked}")
    return ctypes.addressof(api)

text = ctypes.create_string_buffer(version.encode())

@function(P)
def get_version():
    return ctypes.addressof(text)

base = (P * 2)(get_api, get_version)
library = ctypes.CDLL(_native.__file__)
library.CreateEpFactories.argtypes = [TEXT, P, P, P, ctypes.c_size_t, P]
library.CreateEpFactories.restype = P
factory, count = P(), ctypes.c_size_t(9)
status = library.CreateEpFactories(
    b"x", ctypes.addressof(base), None, ctypes.addressof(factory), 1, ctypes.addressof(count)
)
if broken == "another":
    text.value = b"1.39.1"
    status = library.CreateEpFactories(
        b"x", ctypes.addressof(base), None, ctypes.addressof(factory), 1, ctypes.addressof(count)
    )
print(bool(status), count.value, repr(_native.ort_runtime()))
print(said)
"""


def load(version, broken=""):
    return programs.lines(SCRIPT, version, broken)


@pytest.mark.parametrize("version", ["1.25.0", "1.31.1", "1.99.0", "2.0.0"])
def test_tables_that_read_back_are_taken(version):
    state, said = load(version)
    assert state == f"False 1 '{version}'"
    assert set(ast.literal_eval(said)) == {"asked 25"}


@pytest.mark.parametrize("broken", ["arg", "time"])
def test_events_that_do_not_read_back_are_refused(broken):
    state, said = load("1.40.0", broken)
    assert state == "True 0 ''"
    assert "differs from the one created" in said
    assert "Update epprof_nb" in said


def test_a_second_copy_of_another_release_is_refused():
    state, said = load("1.40.0", "another")
    assert state == "True 0 '1.40.0'"
    assert "ONNX Runtime 1.40.0 is observed in this process, and 1.39.1 cannot be" in said


def test_a_runtime_without_plugins_is_refused():
    state, said = load("1.31.0", "no ep api")
    assert state == "True 0 ''"
    assert "does not support plugin execution providers" in said


@pytest.mark.parametrize("version", ["1.24.4", "1.9.0", "0.1"])
def test_an_older_runtime_is_asked_for_no_more_than_it_has(version):
    state, said = load(version)
    assert state == "True 0 ''"
    assert "asked 1'" in said
    assert "1.25 is the first" in said
