"""Profile files that were modified, forged or written by another version."""

import hashlib
import io
import json
import zipfile

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epprof_nb.core.errors import ProfileFileError
from epprof_nb.files.epprof import reading_writing as epprof
from epprof_nb.profiles import load
from tests.helpers.saved_profiles import assert_same, some
from tests.helpers.tiny import call, kernel, line, op, profile


class Forged:
    """A saved file that can be modified and written again with valid checksums."""

    def __init__(self, saved):
        with zipfile.ZipFile(io.BytesIO(saved)) as archive:
            self.members = {name: archive.read(name) for name in archive.namelist()}
        self.manifest = json.loads(self.members.pop("manifest.json"))
        self.method = zipfile.ZIP_STORED

    def change(self, table, **columns):
        frame = pq.read_table(pa.BufferReader(self.members[f"{table}.parquet"]))
        for name, values in columns.items():
            frame = frame.drop_columns(name) if name in frame.column_names else frame
            frame = frame if values is None else frame.append_column(name, values)
        sink = io.BytesIO()
        pq.write_table(frame, sink, compression="zstd")
        self.put(table, sink.getvalue())

    def put(self, table, data):
        self.members[f"{table}.parquet"] = data
        self.manifest["tables"][table]["sha256"] = hashlib.sha256(data).hexdigest()

    def write(self, path):
        with zipfile.ZipFile(path, "w", self.method) as archive:
            for name, data in self.members.items():
                archive.writestr(name, data)
            archive.writestr("manifest.json", json.dumps(self.manifest))


@pytest.fixture
def forged(saved):
    return Forged(saved)


def refused(forged, path, message, **options):
    forged.write(path)
    with pytest.raises(ProfileFileError, match=message):
        load(path, **options)


def test_a_file_put_together_again_unchanged_is_accepted(forged, path):
    forged.write(path)
    assert_same(load(path), some())


def test_a_newer_major_version_asks_for_an_upgrade(forged, path):
    forged.manifest["version"] = [epprof.VERSION[0] + 1, 0]
    refused(forged, path, "pip install --upgrade epprof-nb")


def test_what_a_newer_minor_version_added_is_left_out_with_a_note(forged, path):
    forged.manifest["version"][1] += 1
    forged.change("ops", invention=pa.array([1, 2, 3]))
    forged.members["power.parquet"] = b"whatever"
    forged.write(path)
    loaded = load(path)
    assert [note for note in loaded.info["notes"] if "ops.invention" in note]
    assert [note for note in loaded.info["notes"] if "power.parquet" in note]
    assert loaded.info["notes"][0] == "a note"
    pd.testing.assert_frame_equal(loaded.ops, some().ops)


def test_what_an_older_minor_version_lacked_is_filled(forged, path, monkeypatch):
    forged.change("ops", provider=None, end_line=None)
    del forged.members["overhead.parquet"], forged.manifest["tables"]["overhead"]
    monkeypatch.setattr(epprof, "VERSION", (epprof.VERSION[0], epprof.VERSION[1] + 1))
    forged.write(path)
    loaded = load(path)
    assert_same(loaded, some())


def test_repeats_of_version_1_0_move_to_their_own_column(path):
    old = profile(
        ops=[
            op(1, "In[1]", 0, 100, op_type="cell", source="cell"),
            line(2, 1, 5, 40, 1, source="cell", run_id=0),
            op(3, "run", 10, 20, 2, source="onnxruntime", run_id=0),
            line(4, 1, 50, 90, 1, source="cell", run_id=1),
            op(5, "run", 60, 70, 4, source="onnxruntime", run_id=1),
        ],
        activities=[kernel(15, 55, 3), kernel(65, 75, 5)],
        info={"wall_ns": 110, "code_ns": 95},
    )
    old.save(path)
    forged = Forged(path.read_bytes())
    forged.manifest["version"] = [1, 0]
    forged.change("ops", repeat=None)
    forged.change("activities", repeat=None)
    forged.write(path)
    loaded = load(path)
    assert loaded.ops["repeat"].fillna(-1).tolist() == [-1, 0, 0, 1, 1]
    assert loaded.ops["run_id"].fillna(-1).tolist() == [-1, -1, 0, -1, 1]
    assert loaded.activities["repeat"].tolist() == [0, 1]
    assert loaded.info["repeats"] == [[5, 50], [50, 95]]


def test_runs_of_version_1_0_without_repeats_stay_runs(path):
    old = profile(
        ops=[
            line(1, 1, 0, 100, source="cell"),
            op(2, "run", 10, 90, 1, source="onnxruntime", run_id=0),
            op(3, "mine", 20, 30, 2, source="range", run_id=0),
        ],
    )
    old.save(path)
    forged = Forged(path.read_bytes())
    forged.manifest["version"] = [1, 0]
    forged.change("ops", repeat=None)
    forged.change("activities", repeat=None)
    forged.write(path)
    assert load(path).ops["run_id"].fillna(-1).tolist() == [-1, 0, 0]
    assert "repeats" not in load(path).info


@pytest.mark.parametrize("name", ["epprof_nb", "Kineto", None])
def test_zeros_of_traces_before_1_10_are_missing(name, path):
    info = {"trace_format": name} if name else {}
    profile(ops=[op(1, "f", 0, 9)], api_calls=[call(1, 2)], info=info).save(path)
    forged = Forged(path.read_bytes())
    forged.manifest["version"] = [1, 9]
    forged.change("ops", suspended_ns=pa.array([0]))
    forged.change("api_calls", return_value=pa.array([0]))
    forged.write(path)
    loaded = load(path)
    assert loaded.ops["suspended_ns"].isna().tolist() == [name is not None]
    assert loaded.api_calls["return_value"].isna().tolist() == [name == "Kineto"]


def test_gpus_of_versions_before_1_3_are_read_as_gpus(forged, path):
    forged.manifest["version"] = [1, 2]
    devices = forged.manifest["info"]["devices"] = [
        {"device_id": 0, "name": "H200", "kind": "cuda"},
        {"device_id": 1000, "name": "CPU", "kind": "host"},
    ]
    forged.write(path)
    assert load(path).info["devices"] == [{**devices[0], "kind": "gpu"}, devices[1]]


@pytest.mark.parametrize("repeats", [[[0]], [[0, 1, 2]], [[5, 4]], [[0, 9], [8, 10]], [["0", 1]]])
def test_repeats_that_are_no_time_ranges_are_refused(forged, path, repeats):
    forged.manifest["info"]["repeats"] = repeats
    refused(forged, path, "repeats in the info")


def test_a_column_that_is_missing_without_reason_is_refused(forged, path):
    forged.change("ops", suspended_ns=None)
    refused(forged, path, "lacks the column suspended_ns")


def test_a_table_that_is_missing_without_reason_is_refused(forged, path):
    del forged.members["graphs.parquet"]
    refused(forged, path, "graphs is missing")


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("start_ns", pa.array([0.5, 1, 2])),
        ("start_ns", pa.array([1, 2, 3], pa.int32())),
        ("line", pa.array(["1", "2", "3"])),
        ("name", pa.array(["plain", "strings", "swell"])),
        ("args", pa.array([{"a": 1}, None, None])),
    ],
)
def test_columns_of_another_type_are_refused(forged, path, column, values):
    forged.change("ops", **{column: values})
    refused(forged, path, f"ops.{column} has type")


def text(*values):
    return pa.array(values).dictionary_encode()


def test_times_must_not_be_missing(forged, path):
    forged.change("ops", start_ns=pa.array([1, None, 3]))
    refused(forged, path, "start_ns contains nulls")


@pytest.mark.parametrize("value", ["[1]", "{", "[" * 100_000, "1" * 5000, "null"])
def test_arguments_must_be_json_objects(forged, path, value):
    forged.change("ops", args=text(value, None, None))
    refused(forged, path, "could not be loaded")


def test_a_name_that_is_listed_twice_becomes_one(forged, path):
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int32()), ["a", "a"])
    forged.change("ops", name=twice)
    forged.write(path)
    shown = load(path).ops["name"]
    assert shown.tolist()[:2] == ["a", "a"]
    assert list(shown.cat.categories) == ["a"]


def test_other_row_counts_than_stated_are_refused(forged, path):
    forged.manifest["tables"]["ops"]["rows"] = 4
    refused(forged, path, "has 3 rows instead of 4")


def test_a_changed_table_is_noticed(forged, path):
    forged.members["ops.parquet"] = forged.members["activities.parquet"]
    refused(forged, path, "checksum of the table ops does not match")


def test_a_bomb_is_refused_before_it_is_unpacked(forged, path):
    forged.manifest["tables"]["ops"]["rows"] = 10**9
    refused(forged, path, "claim to need")


def test_a_bomb_in_the_texts_is_refused_before_it_is_unpacked(forged, path):
    forged.change("ops", name=text("a" * 100_000_000, "b", "c"))
    assert len(forged.members["ops.parquet"]) < 30_000
    refused(forged, path, "would need more than")


def test_many_equal_rows_are_refused_before_they_are_read(forged, path, monkeypatch):
    rows, columns = 5_000_000, pq.read_table(pa.BufferReader(forged.members["stacks.parquet"]))
    first = {name: columns[name].combine_chunks()[0] for name in columns.column_names}
    equal = pa.table({name: pa.repeat(value, rows) for name, value in first.items()})
    sink = io.BytesIO()
    pq.write_table(equal, sink, compression="zstd")
    forged.put("stacks", sink.getvalue())
    forged.manifest["tables"]["stacks"]["rows"] = rows
    monkeypatch.setattr(epprof.parquet, "decode", None)
    assert len(forged.members["stacks.parquet"]) < 600_000
    refused(forged, path, "claim to need 200,00.* more than 300 times their size")


def test_a_limit_of_memory_may_be_set(forged, path):
    refused(forged, path, "limit of 100", max_bytes=100)


@pytest.mark.parametrize("name", ["../evil.parquet", "/etc/passwd", "evil.py", "ops.parquet/x"])
def test_members_with_other_names_are_refused(forged, path, name):
    forged.manifest["version"][1] += 1
    forged.members[name] = b"x"
    refused(forged, path, "unknown member")
    assert list(path.parent.iterdir()) == [path]


def test_an_unknown_table_of_this_version_is_refused(forged, path):
    forged.members["power.parquet"] = b"x"
    refused(forged, path, "unknown member")


def test_too_many_members_are_refused(forged, path):
    forged.manifest["version"][1] += 1
    forged.members |= {f"t{'_' * i}.parquet": b"" for i in range(60)}
    refused(forged, path, "too many members")


def test_compressed_members_are_refused(forged, path):
    forged.method = zipfile.ZIP_DEFLATED
    refused(forged, path, "is compressed")


def test_a_member_that_is_there_twice_is_refused(forged, path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", "{}")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("manifest.json", "{}")
    with pytest.raises(ProfileFileError, match="twice"):
        load(path)


def test_another_zip_archive_is_named_as_such(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ops.parquet", b"")
    with pytest.raises(ProfileFileError, match=r"without manifest\.json"):
        load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "zip"},
        {"version": "1.0"},
        {"version": [1]},
        {"version": ["1", "0"]},
        {"tables": []},
        {"tables": {"ops": {"rows": -1, "sha256": ""}}},
        {"tables": {"ops": {"rows": "3", "sha256": ""}}},
        {"info": []},
        {"info": {"wall_ns": "soon"}},
        {"info": {"wall_ns": 2**63}},
        {"info": {"notes": "none"}},
        {"info": {"devices": {}}},
        {"sources": {"In[1]": 5}},
        {"sources": None},
    ],
    ids=str,
)
def test_a_manifest_of_the_wrong_shape_is_refused(forged, path, change):
    forged.manifest |= change
    refused(forged, path, "could not be loaded")


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_a_manifest_that_is_no_object_is_refused(path, content):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", content)
    with pytest.raises(ProfileFileError, match="could not be loaded"):
        load(path)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("table", ["ops", "activities", "api_calls"])
def test_a_file_without_names_is_shown(table, forged, path):
    rows = forged.manifest["tables"][table]["rows"]
    kind = pa.dictionary(pa.int32(), pa.string())
    forged.change(table, name=pa.nulls(rows, kind))
    forged.write(path)
    loaded = load(path)
    assert "text/html" in loaded._repr_mimebundle_()
    loaded.to_html(path.with_suffix(".html"))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("table", ["ops", "activities", "api_calls"])
@pytest.mark.parametrize(
    ("column", "value"),
    [("end_ns", -(2**62)), ("end_ns", 0), ("end_ns", 2**63 - 1),
     ("duration_ns", -5), ("duration_ns", 2**62)],
)  # fmt: skip
def test_times_that_contradict_each_other_are_shown(table, column, value, forged, path):
    rows = forged.manifest["tables"][table]["rows"]
    forged.change(table, **{column: pa.array([value] * rows, pa.int64())})
    forged.write(path)
    loaded = load(path)
    for analysis in (loaded.by_op, loaded.by_kernel, loaded.by_line, loaded.by_path, loaded.gaps):
        analysis()
    assert "text/html" in loaded._repr_mimebundle_()
    for name in ("timeline", "breakdown", "utilisation", "kernels", "gaps"):
        getattr(loaded.plot, name)()
    loaded.to_chrome(path.with_suffix(".json"))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("table", ["ops", "activities", "api_calls"])
@pytest.mark.parametrize("value", [-(2**62), 2**62, 2**63 - 1])
def test_impossible_times_are_counted_and_change_no_other_number(table, value, forged, path):
    rows = forged.manifest["tables"][table]["rows"]
    forged.change(table, duration_ns=pa.array([value] * rows, pa.int64()))
    forged.write(path)
    loaded = load(path)
    frame = getattr(loaded, table)
    assert not frame["duration_ns"].any()
    assert frame["end_ns"].equals(frame["start_ns"])
    assert f"{rows} of {rows} rows of {table} have impossible numbers (duration_ns)" in str(
        loaded.info["notes"]
    )
    for name in ("by_module", "by_node", "by_step", "by_stream", "launches", "overlap", "insights"):
        result = getattr(loaded, name)()
        times = result[[column for column in result if column.endswith("_ns")]]
        assert not (times.abs() > 2**53).any(axis=None), name


def test_impossible_sizes_are_missing(forged, path):
    rows = forged.manifest["tables"]["activities"]["rows"]
    sizes = pa.array([2**62, *[None] * (rows - 1)], pa.int64())
    forged.change("activities", bytes=sizes)
    forged.write(path)
    loaded = load(path)
    assert loaded.activities["bytes"].isna().all()
    assert "1 of" in loaded.info["notes"][-1]


def test_a_stack_that_is_below_itself_is_refused(forged, path):
    forged.change("stacks", parent_id=pa.array([0, 0, 0], pa.int32()))
    refused(forged, path, "the caller of a stack does not precede it")


def test_an_activity_of_an_unknown_stack_is_refused(forged, path):
    forged.change("activities", stack_id=pa.array([99, None], pa.int32()))
    refused(forged, path, "refers to a stack that does not exist")


def test_a_file_of_a_version_without_stacks_has_none(forged, path):
    forged.manifest["version"] = [1, 3]
    del forged.members["stacks.parquet"], forged.manifest["tables"]["stacks"]
    forged.change("activities", stack_id=None, stack_source=None)
    forged.write(path)
    prof = load(path)
    assert len(prof.stacks) == 0
    assert prof.activities["stack_id"].isna().all()
