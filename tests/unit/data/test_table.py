"""Tables: storage, display, and equal results with every pandas."""

import gc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, API_CALLS, MISSING, MISSING_DELTA, OPS, TABLES
from epprof_nb.data.table import Deferred, Table, concat

NAMES = st.lists(st.none() | st.text(max_size=3), max_size=12)


def shown_dtypes(frame):
    return {
        name: "category of object"
        if isinstance(dtype, pd.CategoricalDtype) and dtype.categories.dtype == object
        else str(dtype)
        for name, dtype in frame.dtypes.items()
    }


@pytest.mark.parametrize("schema", TABLES, ids=lambda schema: schema.name)
@pytest.mark.parametrize("rows", [0, 2])
def test_frame_has_the_schemas_columns_and_dtypes_empty_or_not(schema, rows):
    first = schema.columns[0]
    values = CategoryColumn.of(["a"] * rows) if first.kind == "name" else np.zeros(rows, np.int64)
    frame = Table(schema, {first.name: values}).to_frame()
    by_kind = {
        "time": "int64",
        "int": "int64",
        "id": "Int64",
        "row": "Int32",
        "delta": "Int64",
        "name": "category of object",
        "bool": "bool",
        "args": "object",
    }
    expected = {c.name: by_kind[c.kind] for c in schema.columns if c.name != schema.index}
    expected |= {derived.name: by_kind["name"] for derived in schema.derived}
    assert shown_dtypes(frame) == expected
    assert len(frame) == rows
    assert frame.index.name == schema.index
    assert frame.index.dtype == np.int64


def test_missing_values_are_shown_as_missing():
    table = Table(
        OPS,
        {
            "op_id": np.array([1, 2]),
            "parent_op_id": np.array([MISSING, 1]),
            "name": CategoryColumn.of([None, "b"]),
            "args": CategoryColumn.of([None, '{"layer": 3}']),
        },
    )
    frame = table.to_frame()
    assert frame["parent_op_id"].isna().tolist() == [True, False]
    assert frame["name"].isna().tolist() == [True, False]
    assert frame["args"].tolist() == [None, {"layer": 3}]
    assert frame["provider"].isna().all()


def test_columns_left_out_are_filled():
    table = Table(API_CALLS, {"start_ns": np.array([5, 6])})
    assert table["op_id"].tolist() == [MISSING, MISSING]
    assert table["duration_ns"].tolist() == [0, 0]
    assert table["captured"].tolist() == [False, False]
    assert table.names("name").to_list() == [None, None]


def test_frame_is_a_copy_of_the_table():
    table = Table(ACTIVITIES, {"start_ns": np.array([1, 2]), "op_id": np.array([3, 4])})
    frame = table.to_frame()
    frame.loc[0, "start_ns"] = 99
    frame.loc[0, "op_id"] = 99
    assert table["start_ns"].tolist() == [1, 2]
    assert table["op_id"].tolist() == [3, 4]


CHANGES = {
    "time": lambda frame: frame.__setitem__("start_ns", 0),
    "cell": lambda frame: frame.at.__setitem__((0, "op_id"), 99),
    "rows": lambda frame: frame.loc.__setitem__((frame["op_id"] == 3, "bytes"), 99),
    "name": lambda frame: frame.loc.__setitem__((0, "kind"), "memcpy"),
    "column": lambda frame: frame.pop("bytes"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_frames_of_a_table_are_independent(change):
    columns = {
        "start_ns": np.array([1, 2]), "op_id": np.array([3, 4]), "bytes": np.array([5, MISSING]),
        "kind": CategoryColumn.of(["kernel", "memcpy"]),
    }  # fmt: skip
    table = Table(ACTIVITIES, columns)
    before, changed, after = table.to_frame(), table.to_frame(), table.to_frame()
    expected = before.copy(deep=True)
    change(changed)
    assert not changed.equals(expected)
    for frame in (before, after, table.to_frame()):
        pd.testing.assert_frame_equal(frame, expected)


def test_a_frame_can_be_changed_when_its_table_is_gone():
    read_only = np.array([3, 4])
    read_only.flags.writeable = False
    frame = Table(ACTIVITIES, {"op_id": read_only, "start_ns": read_only}).to_frame()
    frame = frame[["op_id", "start_ns"]]
    gc.collect()
    frame.loc[0, "op_id"] = frame.loc[0, "start_ns"] = 9
    assert frame.to_numpy().tolist() == [[9, 9], [4, 4]]


def test_lists_in_the_arguments_of_two_frames_are_independent():
    table = Table(OPS, {"args": CategoryColumn.of(['{"sizes": [1]}'])})
    table.to_frame()["args"].iloc[0]["sizes"].append(2)
    assert table.to_frame()["args"].iloc[0] == {"sizes": [1]}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"nonsense": np.zeros(1)}, "no column"),
        ({"op_id": np.zeros(1, np.int64), "line": np.zeros(2, np.int64)}, "differ in length"),
        ({"op_id": np.array([1.5])}, "int64"),
        ({"op_id": np.zeros((2, 2), np.int64)}, "one-dimensional"),
        ({"op_id": CategoryColumn.of(["a"])}, "int64"),
        ({"name": np.zeros(1, np.int64)}, "must be CategoryColumn"),
    ],
)
def test_columns_that_break_the_schema_are_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        Table(OPS, columns)


def test_names_and_numbers_have_doors_of_their_own():
    table = Table(OPS)
    with pytest.raises(TypeError, match="names"):
        table["name"]
    with pytest.raises(TypeError, match="numbers"):
        table.names("op_id")


@given(NAMES)
def test_names_come_back_as_they_went_in(values):
    names = CategoryColumn.of(values)
    assert names.to_list() == values
    assert names.compact().to_list() == values
    assert list(names.compact().categories) == sorted({v for v in values if v is not None})


@given(NAMES, st.text(max_size=3))
def test_equals_marks_exactly_the_name(values, wanted):
    assert CategoryColumn.of(values).equals(wanted).tolist() == [v == wanted for v in values]


def test_ids_of_one_name_share_a_category_and_unknown_ids_are_missing():
    names = CategoryColumn.from_ids(np.array([7, 3, 9, 7]), {3: "same", 7: "same"})
    assert names.to_list() == ["same", "same", None, "same"]
    assert names.categories == ("same",)
    assert CategoryColumn.from_ids(np.array([1, -1, 5]), ["a", "b"]).to_list() == ["b", None, None]
    assert CategoryColumn.from_ids(np.empty(0, np.int64), ["a"]).to_list() == []


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_concat_puts_tables_under_each_other(parts):
    tables = [
        Table(ACTIVITIES, {"name": CategoryColumn.of(part), "start_ns": np.arange(len(part))})
        for part in parts
    ]
    whole = concat(tables)
    assert whole.names("name").to_list() == [name for part in parts for name in part]
    assert whole["start_ns"].tolist() == [i for part in parts for i in range(len(part))]
    assert len(set(whole.names("name").categories)) == len(whole.names("name").categories)


def test_take_and_replace_leave_the_original_alone():
    table = Table(
        ACTIVITIES, {"name": CategoryColumn.of(["a", "b", "c"]), "start_ns": np.arange(3)}
    )
    taken = table.take(np.array([True, False, True])).replace(start_ns=np.array([8, 9]))
    assert taken.names("name").to_list() == ["a", "c"]
    assert taken["start_ns"].tolist() == [8, 9]
    assert table["start_ns"].tolist() == [0, 1, 2]


def test_nbytes_counts_every_column():
    table = Table(API_CALLS, {"start_ns": np.zeros(10, np.int64)})
    assert table.nbytes == 10 * 8
    assert table.replace(name=CategoryColumn.of(["a"] * 10)).nbytes == 10 * (8 + 4)


def test_a_deferred_column_is_computed_once_and_only_when_it_is_read():
    computed = []

    def compute():
        computed.append("grid_x")
        return np.array([4, 5, 6], np.int32)

    columns = {"start_ns": np.arange(3), "grid_x": Deferred(3, compute)}
    table = Table(ACTIVITIES, columns)
    assert (len(table), table.nbytes) == (3, 48)
    table = table.replace(end_ns=np.arange(3) + 1)
    assert not table.is_absent("grid_x")
    assert computed == []
    assert table["grid_x"].tolist() == table["grid_x"].tolist() == [4, 5, 6]
    assert table["grid_x"].dtype == np.int64
    assert computed == ["grid_x"]


@pytest.mark.parametrize("rows", [slice(1, 3), np.array([2, 1])])
def test_deferred_columns_are_like_others(rows):
    values = np.array([4, 5, 6])
    deferred, plain = (
        Table(ACTIVITIES, {"start_ns": np.arange(3), "grid_x": grid_x})
        for grid_x in (Deferred(3, values.copy), values)
    )
    pd.testing.assert_frame_equal(deferred.take(rows).to_frame(), plain.take(rows).to_frame())
    pd.testing.assert_frame_equal(
        concat([deferred, plain]).to_frame(), concat([plain, plain]).to_frame()
    )
    pd.testing.assert_frame_equal(deferred.to_frame(), plain.to_frame())


def test_a_deferred_column_of_another_length_is_refused():
    with pytest.raises(ValueError, match="differ in length"):
        Table(ACTIVITIES, {"start_ns": np.arange(3), "grid_x": Deferred(2, list)})


def test_one_value_for_all_rows_needs_no_memory_per_row():
    table = Table(ACTIVITIES, {"start_ns": np.arange(3), "grid_x": np.broadcast_to(7, 3)})
    assert table["grid_x"].strides == (0,)
    assert table.to_frame()["grid_x"].tolist() == [7, 7, 7]


def test_columns_left_out_need_no_memory_per_row():
    import tracemalloc

    times = np.arange(1_000_000)
    tracemalloc.start()
    try:
        table = Table(OPS, {"op_id": times})
        parts = [table.take(slice(0, 10)), table.replace(start_ns=times), concat([table, table])]
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 8 * len(times) * 2.1  # only the concatenation has a column of its own
    assert most < 8 * len(times) * 2.1
    assert all(part.is_absent("in_use_bytes") for part in parts)
    assert not table.is_absent("op_id")
    assert not table.has_value("in_use_bytes").any()


def test_a_change_of_minus_one_is_no_missing_value():
    table = Table(OPS, {"op_id": np.arange(2), "in_use_delta_bytes": np.array([-1, MISSING_DELTA])})
    assert table.has_value("in_use_delta_bytes").tolist() == [True, False]
    assert table.to_frame()["in_use_delta_bytes"].tolist() == [-1, pd.NA]
