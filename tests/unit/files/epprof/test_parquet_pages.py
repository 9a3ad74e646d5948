"""Small files that state little and would need much memory are refused before they are read."""

import contextlib
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epprof_nb.data.schema import OPS
from epprof_nb.files.epprof import parquet
from epprof_nb.files.epprof.parquet_footer import row_groups
from epprof_nb.files.epprof.parquet_pages import NUMBER_ENCODINGS, chunk_size
from epprof_nb.files.epprof.thrift import I32, I64, LIST, CompactReader
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
    for group, chunks in enumerate(row_groups(data)):
        stated = file.metadata.row_group(group)
        for column, chunk in enumerate(chunks):
            size = chunk_size(data, chunk, NUMBER_ENCODINGS)
            headers = stated.column(column).total_uncompressed_size - size.bytes
            assert 0 < headers < 100 * (2 + size.values // 1_000)
            assert size.values == chunk.values == stated.num_rows
        assert column + 1 == stated.num_columns
    assert group + 1 == file.metadata.num_row_groups


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


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x15" + b"\xff" * 40, "a number that is too long"),
        (b"\x1c" * 40, "nested too deeply"),
        (b"\x19" * 40, "nested too deeply"),
        (b"\x15\x02\x05\x02\x02\x00", "a field twice"),
        (b"\x19\xf5\xff\xff\x03", "truncated"),
        (b"\x1d\x00", "a type that Parquet does not use"),
    ],
)
def test_damaged_metadata_are_refused(data, why):
    with pytest.raises(ValueError, match=why):
        CompactReader(data, 0, len(data)).struct()


def test_a_field_of_another_type_is_missing():
    data = b"\x15\x02\x16\x04\x12\x19\x25\x06\x08\x00"
    expected = {(1, I32): 1, (2, I64): 2, (3, 2): None, (4, LIST): [3, 4]}
    assert CompactReader(data, 0, len(data)).struct() == expected


def test_a_footer_with_a_level_histogram_of_another_length_ends_no_process(tmp_path):
    """pyarrow ends the process where the metadata of such a column chunk are made."""
    table = synthetic_profile(activities=300).tables["ops"]
    data = bytearray(parquet.encode(table))
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    # Lists of 0 and 2 int64: repetition levels, and definition levels of which none is 0.
    changed = data[footer:-8].replace(b"\x06\x19\x26\x00", b"\x06\x19\x16")
    if len(changed) == len(data) - 8 - footer:
        pytest.skip("this pyarrow writes no level histograms")
    data[footer:] = changed + len(changed).to_bytes(4, "little") + b"PAR1"
    (tmp_path / "ops.parquet").write_bytes(data)
    code = (
        "import sys; from epprof_nb.files.epprof import parquet\n"
        "from epprof_nb.data.schema import OPS\n"
        "data = open(sys.argv[1], 'rb').read()\n"
        "try: parquet.decode(data, OPS, rows=int(sys.argv[2]), max_bytes=10**7,"
        " allow_missing=False)\n"
        "except OSError as error: print(error)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "ops.parquet", str(len(table))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (0, "")
    assert "histogram size mismatch" in run.stdout
