"""Small files that state little and would need much memory are refused before they are read."""

import contextlib
import struct
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epprof_nb.data.schema import OPS
from epprof_nb.files.epprof import parquet
from epprof_nb.files.epprof.parquet_pages import NUMBER_ENCODINGS, chunk_size
from epprof_nb.testing import synthetic_profile


def decoded(data, rows, max_bytes=10**7):
    return parquet.decode(data, OPS, rows=rows, max_bytes=max_bytes, allow_missing=True)


def written(table, **options):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", **options)
    return sink.getvalue().to_pybytes()


def test_sums_of_page_headers_are_those_that_parquet_states():
    table = synthetic_profile(activities=50_000).tables["activities"]
    data = parquet.encode(table)
    file = pq.ParquetFile(pa.BufferReader(data))
    for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            size = chunk_size(data, chunk, NUMBER_ENCODINGS)
            headers = chunk.total_uncompressed_size - size.bytes
            assert 0 < headers < 100 * (2 + size.values // 1_000)
            assert size.values == group.num_rows


def test_a_footer_that_states_too_little_does_not_help():
    text = pa.array(["a" * 20_000_000, "b"]).dictionary_encode()
    data = written(pa.table({"op_id": [1, 2], "name": text}))
    stated = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    size = stated.column(1).total_uncompressed_size
    assert len(data) < 10_000 < 2 * 10**7 < size
    # The footer's sizes are zigzag varints of eight bits each: make them small.
    forged = data.replace(_varint(size), _varint(1000, like=_varint(size)))
    forged = forged.replace(
        _varint(stated.total_byte_size), _varint(1100, like=_varint(stated.total_byte_size))
    )
    lower = pq.ParquetFile(pa.BufferReader(forged)).metadata.row_group(0)
    assert lower.total_byte_size < 10_000
    with pytest.raises(ValueError, match="would need more than"):
        decoded(forged, 2)


def _varint(value, like=None):
    """Zigzag varint of a number, as long as another one."""
    value, out = value << 1, bytearray()
    while value > 0x7F or (like and len(out) < len(like) - 1):
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def test_encodings_that_are_never_written_are_refused():
    same = pa.array(["a" * 100_000] * 200)
    data = written(
        pa.table({"name": same.cast(pa.dictionary(pa.int32(), pa.string()))}),
        use_dictionary=False,
        column_encoding={"name": "DELTA_BYTE_ARRAY"},
    )
    assert len(data) < 5_000
    with pytest.raises(ValueError, match="encoding 7"):
        decoded(data, 200)


def test_a_dictionary_larger_than_its_column_is_refused():
    indices = pa.array(np.zeros(3, np.int32))
    many = pa.DictionaryArray.from_arrays(indices, pa.array([str(i) for i in range(100_000)]))
    with pytest.raises(ValueError, match="more entries"):
        decoded(written(pa.table({"name": many})), 3)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_page_headers_raise_errors_of_known_kinds(seed):
    table = synthetic_profile(activities=300).tables["ops"]
    data = bytearray(parquet.encode(table))
    random = np.random.default_rng(seed)
    for at in random.integers(4, len(data) - 8, 6):
        data[at] = random.integers(256)
    known = (ValueError, OSError, pa.ArrowException, ArithmeticError, LookupError)
    with contextlib.suppress(*known):
        decoded(bytes(data), len(table))


def test_a_bomb_does_not_reach_the_memory(tmp_path):
    """The peak of a process that loads a forged file stays near that of one that does not."""
    text = pa.array(["a" * 300_000_000, "b"]).dictionary_encode()
    path = tmp_path / "ops.parquet"
    path.write_bytes(written(pa.table({"op_id": [1, 2], "name": text})))
    code = (
        "import resource, sys; from epprof_nb.files.epprof import parquet\n"
        "from epprof_nb.data.schema import OPS\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: parquet.decode(open(sys.argv[1], 'rb').read(), OPS, rows=2, max_bytes=7 * 10**7,"
        " allow_missing=True)\n"
        "except ValueError: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) < 50_000  # KiB


def test_varints_are_bounded():
    from epprof_nb.files.epprof.parquet_pages import _Reader

    endless = struct.pack("B", 0xFF) * 40
    with pytest.raises(ValueError, match="too long a number"):
        _Reader(endless, 0, len(endless)).varint()
