"""The decoder on raw buffers that CUPTI filled on a real GPU.

The recordings hold each record's offset as CUPTI's own walk found it. They were made with ctypes
alone (tests/tools/record_cupti_buffers.py), so they are independent of the decoder.
"""

import numpy as np
import pytest

from epprof_nb import _native
from epprof_nb.data.schema import ACTIVITY_KINDS
from epprof_nb.recording.cupti import layouts as abi
from epprof_nb.recording.cupti.loading import packed_layout
from epprof_nb.recording.cupti.tables import activities, memory
from tests.paths import DATA

RECORDINGS = sorted(DATA.glob("cupti_*.npz"))


@pytest.fixture(params=RECORDINGS, ids=lambda path: path.stem)
def recording(request):
    return np.load(request.param)


def buffers(recording):
    count = sum(name.startswith("buffer_") for name in recording.files)
    return [(recording[f"buffer_{i}"], recording[f"offsets_{i}"]) for i in range(count)]


def decoded(recording, column, dtype):
    layout = packed_layout(int(recording["version"]))
    parts = [_native.decode(raw.tobytes(), layout)[column] for raw, _ in buffers(recording)]
    return np.concatenate([np.frombuffer(part, dtype) for part in parts])


def test_there_are_recordings_of_cuda_12_and_13():
    versions = {int(np.load(path)["version"]) for path in RECORDINGS}
    assert any(version < 100 for version in versions)
    assert any(version >= 130000 for version in versions)


def test_the_walk_by_our_sizes_finds_every_record_where_cupti_does(recording):
    layout = abi.layout_for(int(recording["version"]))
    sizes = {
        kind: layout.records[record].size
        for record, kinds in abi.RECORD_KINDS.items()
        for kind in kinds
    }
    for raw, offsets in buffers(recording):
        kinds = [int(raw[o : o + 4].view(np.uint32)[0]) for o in offsets]
        ends = [int(o) + sizes[kind] for o, kind in zip(offsets, kinds, strict=True)]
        assert ends == [*offsets[1:].tolist(), len(raw)]
        result = _native.decode(raw.tobytes(), packed_layout(int(recording["version"])))
        assert result["bytes_walked"] == len(raw)


def test_kernels_have_the_dimensions_they_were_launched_with(recording):
    kind = decoded(recording, "kind", np.uint8)
    kernels = kind == ACTIVITY_KINDS.index("kernel")
    launches = int(recording["launches"])
    by_time = np.argsort(decoded(recording, "start_ns", np.int64)[kernels], kind="stable")

    def of(column, dtype=np.int32):
        return decoded(recording, column, dtype)[kernels][by_time]

    assert of("grid_x").tolist() == list(range(1, launches + 1))
    shape = [of(c) for c in ("grid_y", "grid_z", "block_x", "block_y", "block_z")]
    assert set(zip(*shape, strict=True)) == {(2, 3, 4, 5, 6)}
    assert set(of("dynamic_shared_bytes")) == {256}
    assert (of("registers_per_thread") > 0).all()
    assert (of("end_ns", np.int64) > of("start_ns", np.int64)).all()
    assert len(set(of("correlation_id", np.uint32))) == launches
    assert set(of("graph_node_id", np.int64)) == {0}


def test_external_ids_name_the_launch_they_were_pushed_around(recording):
    kernels = decoded(recording, "kind", np.uint8) == ACTIVITY_KINDS.index("kernel")
    correlation = decoded(recording, "correlation_id", np.uint32)[kernels]
    grid = decoded(recording, "grid_x", np.int32)[kernels]
    external = dict(
        zip(
            decoded(recording, "external.correlation_id", np.uint32).tolist(),
            decoded(recording, "external.id", np.uint64).tolist(),
            strict=True,
        )
    )
    assert [external[c] for c in correlation.tolist()] == grid.tolist()


def test_copies_and_sets_have_their_bytes_and_kinds(recording):
    kind = decoded(recording, "kind", np.uint8)
    size = decoded(recording, "bytes", np.int64)
    copy_kind = decoded(recording, "copy_kind", np.uint8)
    copies = kind == ACTIVITY_KINDS.index("memcpy")
    assert size[copies].tolist() == [4000, 8000]
    assert [abi.MEMCPY_KINDS[k] for k in copy_kind[copies]] == ["HtoD", "DtoH"]
    assert size[kind == ACTIVITY_KINDS.index("memset")].tolist() == [800]


def test_activities_get_the_names_of_their_kinds(recording):
    layout = packed_layout(int(recording["version"]))
    names = ("kind", "name", "copy_kind", "src_kind", "dst_kind")
    found = set()
    for raw, _ in buffers(recording):
        rows = activities(_native.decode(raw.tobytes(), layout), None, {})
        found.update(zip(*(rows.names(name).to_list() for name in names), strict=True))
    assert found == {
        ("kernel", "", None, None, None),  # its name was in the memory of another process
        ("memcpy", "memcpy HtoD", "HtoD", "pinned", "device"),
        ("memcpy", "memcpy DtoH", "DtoH", "device", "pageable"),
        ("memset", "memset", None, None, "device"),
        ("synchronization", "event_synchronize", None, None, None),
        ("synchronization", "stream_synchronize", None, None, None),
        ("synchronization", "context_synchronize", None, None, None),
    }


def test_allocations_have_the_fields_of_their_columns():
    widths = {"operation": "u4", "memory_kind": "u4", "address": "u8", "bytes": "u8",
              "time_ns": "i8", "device_id": "i4", "context_id": "i4", "stream_id": "i4",
              "correlation_id": "u4"}  # fmt: skip
    raw = {
        f"memory.{name}": np.array([number], width).tobytes()
        for number, (name, width) in enumerate(widths.items(), 1)
    }
    source = _native.intern("/opt/lib/libcublasLt.so.13")
    raw["memory.source_id"] = np.array([source], "u4").tobytes()
    table = memory(raw, None)
    assert table.names("library").to_list() == ["libcublasLt.so.13"]
    numeric = [name for name in widths if name not in {"operation", "memory_kind"}]
    assert [table[name].tolist() for name in numeric] == [[n] for n in range(3, 10)]
    assert table.names("operation").to_list() == [abi.MEMORY_OPERATIONS[1]]
    assert table.names("memory_kind").to_list() == [abi.MEMORY_KINDS[2]]


def test_api_calls_overhead_and_memory_are_decoded(recording):
    api_start = decoded(recording, "api.start_ns", np.int64)
    api_end = decoded(recording, "api.end_ns", np.int64)
    assert len(api_start) > int(recording["launches"])
    assert (api_end >= api_start).all()
    assert set(decoded(recording, "api.runtime", np.uint8)) == {0, 1}
    operations = [
        abi.MEMORY_OPERATIONS[o] for o in decoded(recording, "memory.operation", np.uint32)
    ]
    assert {"allocation", "release"} <= set(operations)
    assert 4096 in decoded(recording, "memory.bytes", np.uint64)


def test_a_row_has_nothing_of_a_record_that_was_there_before():
    layout, packed = abi.layout_for(130001), packed_layout(130001)

    def decode(name):
        raw = bytearray(b"\1" * layout.records[name].size)
        raw[:4] = abi.RECORD_KINDS[name][0].to_bytes(4, "little")
        return activities(_native.decode(bytes(raw), packed), None, {})

    names = ("graph_id", "graph_node_id", "grid_x", "registers_per_thread")
    assert [decode("kernel")[name].item() for name in names] != [-1] * 4
    assert [decode("synchronization")[name].item() for name in names] == [-1] * 4


@pytest.mark.parametrize("cut", [1, 3, 7, 100])
def test_a_truncated_buffer_ends_the_walk_at_the_last_whole_record(recording, cut):
    raw, offsets = max(buffers(recording), key=lambda pair: len(pair[0]))
    result = _native.decode(raw[:-cut].tobytes(), packed_layout(int(recording["version"])))
    assert result["bytes_walked"] in offsets.tolist()
    assert result["bytes_walked"] <= len(raw) - cut


def test_records_of_unknown_kinds_end_the_walk():
    raw = np.full(64, 0xFF, np.uint8).tobytes()
    assert _native.decode(raw, packed_layout(130001))["bytes_walked"] == 0


def test_a_foreign_layout_is_refused():
    with pytest.raises(ValueError, match="layout"):
        _native.decode(b"", b"1234")
