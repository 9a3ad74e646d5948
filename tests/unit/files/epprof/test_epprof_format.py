"""The .epprof file: exact round trips, and one clear error for invalid files."""

import io
import json
import stat
import zipfile

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from epprof_nb.core.errors import EpprofError, ProfileFileError
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, OPS
from epprof_nb.data.table import Table
from epprof_nb.files.epprof import reading_writing as epprof
from epprof_nb.files.epprof.reading_writing import save
from epprof_nb.files.impossible_numbers import LARGEST
from epprof_nb.profiles import Profile, load
from epprof_nb.testing import synthetic_profile
from tests.helpers.saved_profiles import assert_same, some
from tests.helpers.tiny import op, profile


@pytest.mark.parametrize(
    "original", [Profile(), some(), synthetic_profile(3_000)], ids=["empty", "tiny", "made up"]
)
def test_what_is_loaded_is_what_was_saved(path, original):
    save(original, path)
    assert_same(load(path), original)


def test_the_doors_of_a_profile_lead_here(path):
    some().save(str(path))
    assert_same(load(str(path)), some())


FUZZ = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
names = st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"])), max_size=8)
numbers = st.integers(-(2**63), 2**63 - 1)
times = st.integers(-LARGEST, LARGEST)


@FUZZ
@given(names, st.data())
def test_any_table_survives_the_round_trip(path, texts, data):
    n = len(texts)
    ids, starts = (
        np.array(data.draw(st.lists(kind, min_size=n, max_size=n)), np.int64)
        for kind in (numbers, times)
    )
    args = data.draw(
        st.lists(st.none() | st.dictionaries(st.text(), st.integers() | st.text()), min_size=n,
                 max_size=n)
    )  # fmt: skip
    table = Table(
        OPS,
        {
            "op_id": np.arange(n),
            "parent_op_id": ids,
            "start_ns": starts,
            "name": CategoryColumn.of(texts),
            "args": CategoryColumn.of([None if a is None else json.dumps(a) for a in args]),
        },
    )
    save(Profile({"ops": table}), path)
    back = load(path).tables["ops"]
    assert back["parent_op_id"].tolist() == ids.tolist()
    assert back["start_ns"].tolist() == starts.tolist()
    assert back.names("name").to_list() == texts
    assert back.to_frame()["args"].tolist() == args


def test_optional_columns_without_values_are_left_out(path):
    for deltas in (None, [5, -1, None]):
        ops = [op(i, "x", 0, 1) for i in range(3)]
        for row, delta in zip(ops, deltas or (), strict=False):
            row["in_use_delta_bytes"] = delta
        save(profile(ops), path)
        with zipfile.ZipFile(path) as archive:
            columns = pq.read_schema(io.BytesIO(archive.read("ops.parquet"))).names
        assert ("in_use_delta_bytes" in columns) == (deltas is not None)
        assert "in_use_bytes" not in columns
        assert_same(load(path), profile(ops))
    assert load(path).ops["in_use_delta_bytes"].tolist() == [5, -1, pd.NA]


def test_names_that_are_no_unicode_are_saved_escaped(path):
    table = Table(ACTIVITIES, {"name": CategoryColumn.of(["a\udc80", "a\\udc80", None])})
    save(Profile({"activities": table}), path)
    loaded = load(path).tables["activities"].names("name")
    assert loaded.to_list() == ["a\\udc80", "a\\udc80", None]
    assert len(set(loaded.categories)) == len(loaded.categories)


def test_info_may_hold_numpy_numbers(path):
    save(Profile(info={"wall_ns": np.int64(7), "share": np.float64(0.5)}), path)
    assert load(path).info == {"wall_ns": 7, "share": 0.5}


def test_the_same_profile_gives_the_same_bytes(path, saved):
    save(some(), path)
    assert path.read_bytes() == saved


def test_other_tools_can_read_the_tables(saved):
    with zipfile.ZipFile(io.BytesIO(saved)) as archive:
        frame = pd.read_parquet(io.BytesIO(archive.read("activities.parquet")))
    assert frame["name"].tolist() == ["void f<int>(int*)", "memcpy"]
    assert frame["bytes"].isna().tolist() == [True, False]


def test_a_failed_save_leaves_the_old_file_and_nothing_else(path, monkeypatch, saved):
    save(some(), path)

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(epprof.parquet, "encode", fail)
    with pytest.raises(OSError, match="disk full"):
        save(Profile(), path)
    assert path.read_bytes() == saved
    assert list(path.parent.iterdir()) == [path]


def test_a_saved_file_has_the_permissions_of_any_new_file(path):
    save(some(), path)
    other = path.with_name("other")
    other.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


def test_a_file_that_is_not_there_is_an_os_error(path):
    with pytest.raises(FileNotFoundError):
        load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not an .epprof file"),
        (b'{"traceEvents": []}', "not a zip archive"),
        (b"PK\3\4", "end is missing"),
        (b"PK\3\4" + bytes(1000), "end is missing"),
    ],
)
def test_foreign_files_are_named_as_such(path, content, message):
    path.write_bytes(content)
    with pytest.raises(ProfileFileError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert isinstance(caught.value, EpprofError)
    assert isinstance(caught.value, ValueError)


def loads_as_saved_or_is_refused(path, content):
    path.write_bytes(content)
    try:
        loaded = load(path)
    except ProfileFileError:
        return False
    assert_same(loaded, some())
    return True


@FUZZ
@given(st.data())
def test_a_truncated_file_is_refused(path, saved, data):
    length = data.draw(st.integers(0, len(saved) - 1))
    assert not loads_as_saved_or_is_refused(path, saved[:length])


@FUZZ
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 7)), min_size=1, max_size=4))
def test_flipped_bits_are_noticed_or_do_not_matter(path, saved, flips):
    content = bytearray(saved)
    for position, bit in flips:
        content[position % len(content)] ^= 1 << bit
    loads_as_saved_or_is_refused(path, bytes(content))


@FUZZ
@given(st.integers(-700, -1), st.integers(0, 7))
@example(-22, 0)
def test_flipped_bits_of_the_directory_are_noticed_or_do_not_matter(path, saved, position, bit):
    content = bytearray(saved)
    content[position] ^= 1 << bit
    loads_as_saved_or_is_refused(path, bytes(content))


@FUZZ
@given(st.binary(max_size=300))
def test_noise_is_refused(path, noise):
    assert not loads_as_saved_or_is_refused(path, noise)
    assert not loads_as_saved_or_is_refused(path, b"PK\3\4" + noise)


def test_texts_that_utf8_cannot_encode_are_saved_as_escapes(path):
    tables, info = some().tables, some().info | {"script": "job\udcff.py"}
    save(Profile(tables, info, {"In[1]": "x = '\udc80'"}), path)
    loaded = load(path)
    assert loaded.info["script"] == "job\\udcff.py"
    assert loaded.sources == {"In[1]": "x = '\\udc80'"}
