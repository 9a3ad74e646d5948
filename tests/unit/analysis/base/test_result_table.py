"""Results as columns, and the DataFrames built from them."""

from __future__ import annotations

import doctest

import numpy as np
import pandas as pd
import pytest

from epprof_nb.analysis.base import result_table as dataframe
from epprof_nb.analysis.base.result_table import ResultTable, categorical, objects, optional
from epprof_nb.arrays import ids
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.ids import unique_values


def made() -> ResultTable:
    return ResultTable(
        {
            "name": categorical(["b", None, "a"]),
            "line": optional([7, -1, 0]),
            "count": np.array([1, 2, 3]),
            "share": np.array([0.5, np.nan, 0.0]),
            "grid": objects([(1, 2, 3), None, (4, 5, 6)]),
        },
        index="node",
    )


def test_missing_values_are_none():
    table = made()
    assert table.values("name") == ["b", None, "a"]
    assert table.values("line") == [7, None, 0]
    assert table.values("grid") == [(1, 2, 3), None, (4, 5, 6)]
    assert table["line"].tolist() == [7, -1, 0]
    with pytest.raises(TypeError, match="holds names"):
        table["name"]
    with pytest.raises(TypeError, match="holds no names"):
        table.names("line")


@pytest.mark.parametrize("rows", [slice(0, 0), slice(None), np.array([2, 1])])
def test_frames_have_the_same_dtypes_empty_or_not(rows):
    table = made().take(rows)
    frame = table.to_frame()
    assert len(frame) == len(table)
    assert frame.index.name == "node"
    assert frame.dtypes.astype(str).to_dict() == {
        "name": "category", "line": "Int64", "count": "int64", "share": "float64", "grid": "object",
    }  # fmt: skip
    assert frame["name"].cat.categories.dtype == object
    expected = made().to_frame().iloc[rows].reset_index(drop=True)
    pd.testing.assert_frame_equal(frame.reset_index(drop=True), expected)


def test_changing_a_frame_does_not_change_the_table():
    table = made()
    frame = table.to_frame()
    frame.loc[0, "count"] = 100
    frame.loc[0, "line"] = 100
    assert table["count"].tolist() == [1, 2, 3]
    assert table["line"].tolist() == [7, -1, 0]


def test_groups_do_not_depend_on_how_they_are_hashed(monkeypatch):
    rng = np.random.default_rng(0)
    far_apart = rng.integers(-(2**62), 2**62, 50)[rng.integers(0, 50, 3000)]
    near = rng.integers(0, 40, 3000) * 10**9
    codes, first = group_codes(far_apart, near)
    found = unique_values(far_apart)
    monkeypatch.setattr(ids, "_HASHED", 0)
    hashed = group_codes(far_apart, near)
    assert np.array_equal(codes, hashed[0])
    assert np.array_equal(first, hashed[1])
    assert found == unique_values(far_apart) == sorted(set(far_apart.tolist()))
    # Numbered in order of appearance.
    assert np.array_equal(np.unique(codes, return_index=True)[1], first)
    pairs = list(zip(far_apart.tolist(), near.tolist(), strict=True))
    assert len(first) == len(set(pairs))


def test_the_example_of_the_documentation_holds():
    assert doctest.testmod(dataframe).failed == 0
