"""Payloads with a schema, which NCCL's ranges have, as arguments of ops."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import epprof_nb
from epprof_nb.recording.nvtx import injection as nvtx_injection
from tests.helpers.nvtx_libraries import compiled, rows


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    assert nvtx_injection.is_ours()
    path = tmp_path_factory.mktemp("nvtx") / "payload.so"
    loaded = ctypes.CDLL(str(compiled("nvtx_payload.cpp", path, "-shared", "-fPIC")))
    loaded.push_collective.argtypes = [ctypes.c_ulonglong, ctypes.c_size_t, ctypes.c_int]
    loaded.register_without_id.restype = ctypes.c_ulonglong
    assert loaded.attach(2) == 1
    loaded.register_schemas()
    return loaded


class Entry(ctypes.Structure):
    """`SchemaEntry` of native/nvtx/abi.h."""

    _fields_ = (
        ("flags", ctypes.c_uint64), ("type", ctypes.c_uint64), ("name", ctypes.c_char_p),
        ("description", ctypes.c_char_p), ("length", ctypes.c_uint64),
        ("offset", ctypes.c_uint64), ("unused", ctypes.c_void_p * 2),
    )  # fmt: skip


class Schema(ctypes.Structure):
    """`SchemaAttributes` of native/nvtx/abi.h."""

    _fields_ = (
        ("fields", ctypes.c_uint64), ("name", ctypes.c_char_p), ("type", ctypes.c_uint64),
        ("flags", ctypes.c_uint64), ("entries", ctypes.POINTER(Entry)),
        ("entry_count", ctypes.c_size_t), ("static_size", ctypes.c_size_t),
        ("alignment", ctypes.c_size_t), ("id", ctypes.c_uint64), ("extension", ctypes.c_void_p),
    )  # fmt: skip


UNION, SELECTED_UNION = 3, 4  # kinds of schemas
SIGN = (1 << 24) + 3  # an enumeration, of nvtx_payload.cpp
UINT8, INT32, UINT64, SINGLE, REAL, TEXT = 12, 15, 18, 19, 20, 75  # types of entries


def pushed(library, entries, data, kind=1, alignment=0):
    """Arguments of a range whose payload is `data`, other than its domain."""
    array = (Entry * len(entries))(*(Entry(**entry) for entry in entries))
    schema = Schema(type=kind, entries=array, entry_count=len(entries), alignment=alignment)
    with epprof_nb.profile() as prof:
        library.push_with(ctypes.byref(schema), data, ctypes.c_size_t(len(data)))
        library.pop()
    [(_, _, _, args)] = rows(prof)
    assert args.pop("domain") == "collectives"
    return args


def test_the_structs_are_those_of_the_header(tmp_path):
    found = sorted(Path("/usr/local").glob("cuda*/include/nvtx3/nvToolsExtPayload.h"))
    if not found:
        pytest.skip("needs the headers of the CUDA toolkit")
    include = found[-1].parents[1]
    compiled("nvtx_payload_abi.cpp", tmp_path / "abi.o", "-c", f"-I{include}")


def test_entries_are_arguments(library):
    with epprof_nb.profile() as prof:
        for communicator, size, reduction in ((2**63 + 5, 1024, 0), (2**63 + 5, 2048, 9)):
            assert library.push_collective(communicator, size, reduction) == 0
            library.pop()
    common = {"domain": "collectives", "communicator": 2**63 + 5}
    assert rows(prof) == [
        ("AllReduce", "range", None, common | {"Message size [bytes]": 1024, "reduction": "Sum"}),
        ("AllReduce", "range", None, common | {"Message size [bytes]": 2048, "reduction": 9}),
    ]


def test_numbers_and_texts_are_read_and_other_entries_left_out(library):
    with epprof_nb.profile() as prof:
        library.push_mixed()
        library.pop()
    [(_, _, _, args)] = rows(prof)
    assert args == {
        "domain": "collectives", "small": -1, "negative": -70000, "real": 0.1, "infinite": None,
        "text": 'a "text"\n', "fixed": "abcd",
    }  # fmt: skip


def test_an_entry_with_the_name_of_an_attribute_replaces_nothing(library):
    entries = [{"type": INT32, "name": name} for name in (b"domain", b"payload.domain", b"color")]
    found = pushed(library, entries, struct.pack("<3i", 1, 2, 3))
    assert found == {"payload.domain": 1, "payload.payload.domain": 2, "color": 3}


def test_nothing_is_read_beyond_a_payload(library):
    with epprof_nb.profile() as prof:
        library.push_short()
        library.pop()
        for count in (0, 1, -1):
            library.push_nothing(count)
            library.pop()
    args = [args for _, _, _, args in rows(prof)]
    assert args == [{"domain": "collectives", "communicator": 7}] + [{"domain": "collectives"}] * 3


def test_schemas_without_an_id_get_one(library):
    first, second = library.register_without_id(), library.register_without_id()
    assert second > first >= 2**32


def test_other_extensions_are_refused(library):
    assert library.attach(3) == 0


@pytest.mark.parametrize("length", [0, 1, 4])
@pytest.mark.parametrize("flags", [1 << 1, 1 << 2, 1 << 3, 2 << 4, 3 << 4, 4 << 4])
def test_texts_that_are_elsewhere_or_of_variable_length_are_left_out(library, flags, length):
    entries = [
        {"type": UINT64, "name": b"number"},
        {"type": TEXT, "name": b"text", "flags": flags, "offset": 8, "length": length},
    ]
    data = struct.pack("<QQ16s", 7, 16, b"hello")  # read as a pointer, 16 would crash
    assert pushed(library, entries, data) == {"number": 7}


@pytest.mark.parametrize("flags", [0, 1 << 4])
def test_texts_of_fixed_size_are_read(library, flags):
    entries = [{"type": TEXT, "name": b"text", "flags": flags, "length": 4}]
    assert pushed(library, entries, b"abcdefgh") == {"text": "abcd"}


@pytest.mark.parametrize(
    ("first", "data"),
    [
        ({"type": TEXT, "length": 3}, b"abc"),
        ({"type": INT32, "flags": 1 << 4, "length": 4}, bytes(16)),
        ({"type": INT32, "flags": 1 << 1, "length": 4}, bytes(8)),
        ({"type": SIGN}, bytes(4)),
        ({"type": UINT8, "offset": 8}, bytes(12)),
    ],
)
def test_entries_without_offset_follow_the_one_before(library, first, data):
    entries = [{"type": UINT8}, first, {"type": INT32, "name": b"number"}]
    padding = bytes(7) if first.get("flags") == 1 << 1 else bytes(3)
    begin = b"" if "offset" in first else b"\0" + (b"" if first["type"] == TEXT else padding)
    assert pushed(library, entries, begin + data + struct.pack("<i", 42)) == {"number": 42}


def test_entries_of_packed_structs_have_no_padding(library):
    entries = [{"type": UINT8, "name": b"a"}, {"type": REAL, "name": b"b"}]
    data = struct.pack("<Bd", 1, 0.5)
    assert pushed(library, entries, data, alignment=1) == {"a": 1, "b": 0.5}


@pytest.mark.parametrize(
    "first",
    [
        {"type": 999},
        {"type": TEXT, "flags": 2 << 4},
        {"type": INT32, "flags": 3 << 4},
        {"type": INT32, "flags": 1 << 2},
        {"type": INT32, "flags": 1 << 4, "length": 2**62},
        {"type": UINT8, "offset": 2**64 - 1},
    ],
)
def test_entries_after_one_of_unknown_size_need_an_offset(library, first):
    entries = [
        first, {"type": UINT64, "name": b"a"}, {"type": UINT64, "name": b"b"},
        {"type": INT32, "name": b"c", "offset": 24}, {"type": INT32, "name": b"d"},
    ]  # fmt: skip
    data = bytes(24) + struct.pack("<ii", 3, 4)
    assert pushed(library, entries, data) == {"c": 3, "d": 4}


def test_entries_of_unions_share_their_place(library):
    entries = [
        {"type": INT32, "name": b"number"}, {"type": SINGLE, "name": b"real"},
        {"type": TEXT, "name": b"pointer"},
    ]  # fmt: skip
    data = struct.pack("<fi", 1.0, 77)
    assert pushed(library, entries, data, UNION) == {"number": 0x3F800000, "real": 1.0}
    assert pushed(library, entries, data, SELECTED_UNION) == {}


@pytest.mark.parametrize(("value", "shown"), [(-1, "minus"), (1, "plus"), (-2, -2)])
def test_enumerations_may_have_negative_values(library, value, shown):
    entries = [{"type": SIGN, "name": b"sign"}]
    assert pushed(library, entries, struct.pack("<i", value)) == {"sign": shown}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b"\xff\xfe bad \x80", "\ufffd\ufffd bad \ufffd"),
        (b"\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80.", "\ufffd" * 9 + "."),
        ("aé€😀".encode(), "aé€😀"),
        (b"a\xe2\x82", "a\ufffd\ufffd"),
        (b"a" * 255 + "é".encode(), "a" * 255),
        (b"a" * 254 + "é".encode() + b"b", "a" * 254 + "é"),
    ],
)
def test_texts_that_are_not_utf8_lose_nothing_else(library, text, shown):
    entries = [{"type": TEXT, "name": b"text"}, {"type": INT32, "name": b"n\xff"}]
    data = struct.pack("<Qi", ctypes.cast(text, ctypes.c_void_p).value, 5)
    assert pushed(library, entries, data) == {"text": shown, "n\ufffd": 5}


def test_texts_of_fixed_size_end_with_a_whole_character(library):
    entries = [{"type": TEXT, "name": b"text", "length": 4}]
    assert pushed(library, entries, "ab€".encode()) == {"text": "ab"}


def test_distinct_payloads_have_a_bound(library):
    code = f"""
        import ctypes, gc
        import epprof_nb
        from epprof_nb import _native
        gc.disable()
        library = ctypes.CDLL({library._name!r})
        library.attach(2)
        library.register_schemas()
        def profiled(first, end):
            with epprof_nb.profile() as prof:
                library.push_collectives(ctypes.c_ulonglong(first), ctypes.c_ulonglong(end))
            args = [dict(args).get("communicator") for args in prof.ops["args"]]
            return args, [note for note in prof.info.get("notes", []) if "payload" in note]
        kept = 65536
        _native.nvtx_record(True)
        library.push_collectives(ctypes.c_ulonglong(0), ctypes.c_ulonglong(kept - 2))
        args, [note] = profiled(kept - 2, kept + 10)
        assert args == [kept - 2, kept - 1, *[None] * 10], args
        assert note.startswith("10 ranges of NVTX have no payload"), note
        args, notes = profiled(5, 8)
        assert (args, notes) == ([5, 6, 7], [])
        with epprof_nb.profile() as prof, epprof_nb.op("a name after these"):
            pass
        assert prof.ops["name"].tolist() == ["a name after these"]
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
