"""Payloads with a schema, which NCCL's ranges have, as arguments of ops."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from nvtx_libraries import compiled, rows

import epprof_nb
from epprof_nb.frameworks import nvtx_injection


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
