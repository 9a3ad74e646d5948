"""Parts: the folder of one process, also damaged and hostile ones."""

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epprof_nb.core.errors import ProfileFileError
from epprof_nb.data.table import concat
from epprof_nb.files.dataset.manifest import Manifest
from epprof_nb.files.dataset.part import (
    read_columns,
    read_manifest,
    read_pieces,
    write_part,
)
from epprof_nb.files.epprof import parquet
from epprof_nb.testing import synthetic_profile
from tests.helpers.parts import read_part


def manifest(**fields):
    return Manifest(**{"job_id": "a1", "pid": 40, "parent_pid": 39, "rank": 3, **fields})


def activities_in_order():
    activities = synthetic_profile(activities=500).tables["activities"]
    start = activities["start_ns"]
    assert (np.diff(start) < 0).any()  # they are in the order of their launches
    return activities.take(np.argsort(start, kind="stable"))


@pytest.fixture
def part(tmp_path):
    folder = tmp_path / "rank-00003-40"
    write_part(synthetic_profile(activities=500), folder, manifest())
    return folder


def test_a_part_comes_back_whole(part):
    profile, read = read_part(part)
    original = synthetic_profile(activities=500)
    tables = original.tables | {"activities": activities_in_order()}
    for name, table in tables.items():
        assert table.to_frame().equals(profile.tables[name].to_frame()), name
    assert profile.info == original.info
    assert profile.sources == original.sources
    assert (read.rank, read.pid, read.tables["activities"]["rows"]) == (3, 40, 500)


def test_other_tools_see_the_rank_in_each_table(part):
    for path in part.glob("*.parquet"):
        column = pq.read_table(path).column("rank")
        assert column.type == pa.int32()
        assert set(column.to_pylist()) == {3}


def test_a_process_without_rank_has_nulls(tmp_path):
    write_part(synthetic_profile(activities=50), tmp_path, manifest(rank=None))
    assert pq.read_table(tmp_path / "ops.parquet").column("rank").null_count > 0
    assert read_part(tmp_path)[1].rank is None


def test_some_columns_are_read_alone(part):
    read = read_columns(part, read_manifest(part), {"activities": ["start_ns", "kind"]})
    original = activities_in_order()
    assert np.array_equal(read["activities"]["start_ns"], original["start_ns"])
    assert read["activities"].names("kind").to_list() == original.names("kind").to_list()
    assert read["activities"].is_absent("op_id")


@pytest.fixture
def part_in_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 150)
    folder = tmp_path / "rank-00003-40"
    write_part(synthetic_profile(activities=500), folder, manifest())
    return folder


def in_pieces(part, **more):
    return list(read_pieces(part, read_manifest(part), "activities", ["start_ns", "kind"], **more))


def test_a_table_is_read_in_pieces(part_in_groups):
    pieces = in_pieces(part_in_groups)
    original = activities_in_order()
    assert [len(piece) for piece in pieces] == [150, 150, 150, 50]
    whole = concat(pieces)
    assert np.array_equal(whole["start_ns"], original["start_ns"])
    assert whole.names("kind").to_list() == original.names("kind").to_list()
    assert whole.is_absent("op_id")


def test_a_table_that_a_part_lacks_has_no_pieces(part_in_groups):
    assert (
        list(read_pieces(part_in_groups, read_manifest(part_in_groups), "memory", ["kind"])) == []
    )


def test_pieces_of_damaged_and_hostile_files_are_refused(part_in_groups):
    path = part_in_groups / "activities.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:-100] + bytes(100))
    with pytest.raises(ProfileFileError, match="checksum"):
        in_pieces(part_in_groups)
    path.write_bytes(content)
    with pytest.raises(ProfileFileError, match="need more than 100 bytes"):
        in_pieces(part_in_groups, max_bytes=100)
    path.rename(part_in_groups / "elsewhere")
    path.symlink_to(part_in_groups / "elsewhere")
    with pytest.raises(ProfileFileError, match="could not be loaded"):
        in_pieces(part_in_groups)


def test_pieces_must_have_the_stated_rows(part_in_groups):
    path = part_in_groups / "manifest.json"
    stated = json.loads(path.read_text())
    stated["tables"]["activities"]["rows"] = 499
    path.write_text(json.dumps(stated))
    with pytest.raises(ProfileFileError, match="500 rows instead of 499"):
        in_pieces(part_in_groups)


def test_a_part_replaces_the_one_before(part):
    write_part(synthetic_profile(activities=0), part, manifest())
    assert len(read_part(part)[0].activities) == 0


def test_a_part_without_manifest_is_unfinished(part):
    (part / "manifest.json").unlink()
    with pytest.raises(ProfileFileError, match="unfinished"):
        read_part(part)


def test_texts_that_utf8_cannot_encode_are_written_as_escapes(tmp_path):
    write_part(synthetic_profile(activities=5), tmp_path, manifest(command=["a", "\udcff"]))
    assert read_manifest(tmp_path).command == ("a", "\\udcff")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", "epprof"),
        ("version", [2, 0]),
        ("version", "1.0"),
        ("rank", -1),
        ("rank", 2**31),
        ("rank", True),
        ("rank", "3"),
        ("pid", None),
        ("world_size", 0),
        ("job_id", 7),
        ("command", "ls"),
        ("command", ["\ud800"]),
        ("command", ["a"] * 10_001),
        ("hostname", "h" * 100_001),
        ("followed", "magic"),
        ("state", {}),
        ("begin_ns", 1.5),
        ("begin_ns", 2**62),
        ("begin_ns", 10),
        ("clock", []),
        ("clock", {"boot_id": 3}),
        ("clock", {"error_ns": -1}),
        ("tables", []),
        ("tables", {"ops": {"rows": -1, "sha256": ""}}),
        ("info", None),
        ("info", {"wall_ns": "x"}),
        ("sources", {"a": 1}),
        ("format_version", [1]),
    ],
)
def test_wrong_fields_of_a_manifest_are_refused(part, field, value):
    path = part / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(ProfileFileError, match="could not be loaded"):
        read_part(part)


def test_fields_of_a_newer_minor_version_are_ignored(part):
    path = part / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": [1, 9], "new": 1}))
    assert read_part(part)[1].rank == 3


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "\0", '{"format": NaN}'])
def test_a_manifest_that_is_none_is_refused(part, text):
    (part / "manifest.json").write_text(text)
    with pytest.raises(ProfileFileError, match="could not be loaded"):
        read_part(part)


@pytest.mark.parametrize("name", ["manifest.json", "activities.parquet"])
def test_links_pipes_and_folders_are_not_read(part, name):
    path = part / name
    original = path.read_bytes()
    (part / "original").write_bytes(original)
    for make in (
        lambda: path.symlink_to(part / "original"),
        lambda: path.symlink_to("/dev/zero"),
        lambda: os.mkfifo(path),
    ):
        path.unlink()
        make()
        with pytest.raises(ProfileFileError, match="could not be loaded"):
            read_part(part)
    path.unlink()
    path.mkdir()
    with pytest.raises(ProfileFileError, match="could not be loaded"):
        read_part(part)


def test_damage_of_any_table_is_found(part):
    for path in part.glob("*.parquet"):
        original = path.read_bytes()
        for damaged in (b"", original[:-1], original[:100] + b"\xff" + original[101:]):
            path.write_bytes(damaged)
            with pytest.raises(ProfileFileError, match="could not be loaded"):
                read_part(part)
        path.unlink()
        with pytest.raises(ProfileFileError, match="could not be loaded"):
            read_part(part)
        path.write_bytes(original)
    read_part(part)


def test_rows_that_a_part_cannot_have_are_refused(part):
    path = part / "manifest.json"
    stated = json.loads(path.read_text())
    stated["tables"]["activities"]["rows"] = 10**12
    path.write_text(json.dumps(stated))
    with pytest.raises(ProfileFileError, match="claim to need"):
        read_part(part)


def test_the_limit_of_memory_is_named(part):
    with pytest.raises(ProfileFileError, match="larger max_bytes"):
        read_part(part, max_bytes=1_000)
