"""SQL over a profile: right numbers and dtypes, and no access outside the profile."""

import sys
import threading
from time import sleep

import numpy as np
import pandas as pd
import pytest

from epprof_nb.analysis.base.index import index_of
from epprof_nb.analysis.findings import ranking
from epprof_nb.analysis.sql import in_this_process as sql
from epprof_nb.arrays.intervals import length
from epprof_nb.data.arrow import to_arrow
from epprof_nb.data.result_columns import TABLES as DOCUMENTED
from epprof_nb.data.schema import TABLES
from epprof_nb.testing import synthetic_profile
from tests.helpers.tiny import activity, call, kernel, nested, op, profile

pytest.importorskip("duckdb")


def test_a_sum_of_times_is_int64():
    prof = synthetic_profile(5_000)
    total = prof.sql("select name, sum(duration_ns) t from activities group by all order by t desc")
    assert total["t"].dtype == np.int64
    wanted = prof.activities.groupby("name", observed=True)["duration_ns"].sum()
    assert dict(zip(total["name"], total["t"], strict=True)) == wanted.to_dict()


@pytest.mark.parametrize("make", [nested, profile])
@pytest.mark.parametrize("name", [schema.name for schema in TABLES])
def test_tables_have_the_columns_of_the_dataframes(make, name):
    found = make().sql(f"select * from {name}")
    assert list(found) == [column.name for column in DOCUMENTED[name].columns]
    frame = getattr(make(), name)
    frame = frame if frame.index.name is None else frame.reset_index()
    assert len(found) == len(frame)
    for column in found.columns.intersection(["op_id", "start_ns", "name", "short_name", "bytes"]):
        left = [None if pd.isna(v) else v for v in found[column]]
        assert left == [None if pd.isna(v) else v for v in frame[column]]


def test_missing_ids_are_null_and_large_ids_keep_their_digits():
    prof = profile([op(2**62 + 1, "a", 0, 1)], [kernel(0, 1, 2**62 + 1), kernel(1, 2)])
    found = prof.sql("select op_id from activities order by start_ns")["op_id"]
    assert str(found.dtype) == "Int64"
    assert found[0] == 2**62 + 1
    assert found[1] is pd.NA
    assert prof.sql("select count(*) n from activities where op_id is null")["n"].tolist() == [1]


def test_findings_and_their_evidence_are_tables():
    prof = synthetic_profile(100)
    found = prof.sql("select rank, kind, line from insights order by rank")
    wanted = prof.insights()[["rank", "kind", "line"]]
    assert found.astype(object).to_numpy().tolist() == wanted.astype(object).to_numpy().tolist()
    rows = prof.sql("select count(*) n, min(name) name from EVIDENCE_2")
    assert rows["n"].tolist() == [len(prof.evidence(2))]
    with pytest.raises(ValueError, match="evidence_99"):
        prof.sql("from evidence_99")


def test_findings_are_computed_only_for_queries_that_name_them(monkeypatch):
    def fail(*_, **__):
        raise AssertionError

    monkeypatch.setattr(ranking, "findings", fail)
    monkeypatch.setattr(ranking, "findings_table", fail)
    assert synthetic_profile(10).sql("select count(*) n from activities")["n"].tolist() == [10]


def test_a_sum_beyond_64_bits_is_exact():
    prof = profile([op(1, "a", 0, 2**62), op(2, "b", 0, 2**62), op(3, "c", 0, 2**62)])
    assert prof.sql("select sum(duration_ns) s from ops")["s"].tolist() == [3 * 2**62]


def test_arguments_are_json_and_info_is_a_table():
    prof = profile([op(1, "a", 0, 1, args={"layer": 3})], info={"wall_ns": 7})
    assert prof.sql("select args->>'layer' as layer from ops")["layer"].tolist() == ["3"]
    assert prof.sql("select value from info where key = 'wall_ns'")["value"].tolist() == ["7"]


def test_columns_of_numbers_are_shared_not_copied():
    table = synthetic_profile(1_000).tables["activities"]
    for name in ("start_ns", "op_id"):
        shared = to_arrow(table, table.schema.column(name)).buffers()[1]
        assert shared.address == table[name].ctypes.data


def test_busy_time_counts_overlaps_once_and_idle_is_the_rest():
    prof = profile(activities=[
        kernel(0, 10), kernel(2, 5), kernel(10, 12), kernel(20, 15), kernel(30, 40),
        kernel(0, 3, device_id=1), activity("synchronization", 0, 99),
        activity("graph_launch", 50, 60, correlation_id=1), kernel(52, 54, correlation_id=1),
        activity("graph_launch", 70, 75, correlation_id=2),
    ])  # fmt: skip
    for device in (0, 1):
        total = prof.sql(f"select sum(end_ns - start_ns) t from busy where device_id = {device}")
        assert total["t"].tolist() == [length(*index_of(prof).busy(device))]
    idle = prof.sql("select sum(end_ns - start_ns) t from idle where device_id = 0")["t"][0]
    assert idle + length(*index_of(prof).busy(0)) == 75


def test_columns_of_one_name_are_kept():
    assert nested().sql("select 1 as a, 'x' as a").to_numpy().tolist() == [[1, "x"]]


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select * from glob('/*')",
        "select * from read_text('/etc/passwd')",
        "from sniff_csv('/etc/passwd')",
        "select * from parquet_metadata('/etc/passwd')",
        "copy ops to '{folder}/x.csv'",
        "copy (select 1) to '{folder}/x.csv'",
        "export database '{folder}/x'",
        "attach '{folder}/x.db'",
        "install httpfs",
        "load httpfs",
        "set lock_configuration = false",
        "set enable_external_access = true",
        "set memory_limit = '1TB'",
        "create table x as select 1",
        "insert into info values ('a', 'b')",
        "drop view ops",
        "select 1; set memory_limit = '1TB'",
        "select getenv('HOME')",
        "select * from arrow_scan(1, 2, 3)",
        "select * from query_table('/etc/passwd')",
        "select * from secret_of_the_test",
        "select nothing from ops",
        "select",
        "",
    ],
)
def test_a_query_cannot_leave_or_change_the_profile(query, tmp_path):
    secret_of_the_test = pd.DataFrame({"a": [1]})
    with pytest.raises(ValueError, match="query"):
        nested().sql(query.format(folder=tmp_path))
    assert list(tmp_path.iterdir()) == []
    assert len(secret_of_the_test) == 1


SLOW = "select count(*) from range(1e6::int) a, range(1e6::int) b where a.range * b.range = 7"
"""A query of minutes that needs little memory."""


def test_time_and_memory_are_bounded():
    with pytest.raises(TimeoutError, match="time_limit_s"):
        nested().sql(SLOW, time_limit_s=0.1)
    for large in ("select * from range(100_000_000)", "select list(range) from range(100_000_000)"):
        with pytest.raises(MemoryError, match="max_bytes"):
            nested().sql(large, max_bytes=50_000_000)
    with pytest.raises(ValueError, match="more than 0"):
        nested().sql("select 1", time_limit_s=0)


def test_the_memory_of_a_query_is_limited_whatever_its_result_takes():
    query = "select count(*) from (select distinct hash(range) from range(300_000))"
    with pytest.raises(MemoryError, match="max_bytes"):
        nested().sql(query, max_bytes=5_000_000)
    assert nested().sql(query).squeeze() == 300_000


def test_a_function_that_cannot_be_interrupted_is_left_alone():
    """It takes seconds; the call must end before it does."""
    slow = "select damerau_levenshtein(repeat('a', 20_000), repeat('b', 20_000))"
    with pytest.raises(TimeoutError, match="Python waits for it when it exits"):
        nested().sql(slow, time_limit_s=0.1)
    running = [thread for thread in threading.enumerate() if thread.name == "epprof query"]
    assert running
    for thread in running:
        thread.join()
    assert nested().sql("select 1 as one")["one"].tolist() == [1]


def test_a_query_that_begins_after_its_time_ends_at_once(monkeypatch):
    check = sql.check_statement

    def waiting(*args):
        check(*args)
        sleep(0.3)  # the limit is reached before DuckDB runs anything

    monkeypatch.setattr(sql, "check_statement", waiting)
    with pytest.raises(TimeoutError, match="time_limit_s") as caught:
        nested().sql(SLOW.replace("1e6", "2e5"), time_limit_s=0.1)
    assert "Interrupt" in type(caught.value.__cause__).__name__  # it did not run to its end


def test_the_time_limit_includes_the_preparation_and_the_conversion(monkeypatch):
    for slow in ("_connect", "_to_series"):
        real = getattr(sql, slow)

        def waiting(*args, real=real, **options):
            sleep(0.2)
            return real(*args, **options)

        with monkeypatch.context() as patched:
            patched.setattr(sql, slow, waiting)
            with pytest.raises(TimeoutError, match="time_limit_s"):
                nested().sql("select 1 from range(1000000)", time_limit_s=0.15)


def test_without_duckdb_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ImportError, match=r"pip install epprof-nb\[sql\]"):
        nested().sql("select 1")


def test_queries_do_not_change_the_profile():
    prof = profile([op(1, "a", 0, 5)], api_calls=[call(0, 1)])
    before = prof.ops
    result = prof.sql("select start_ns, end_ns from ops")
    result.loc[:, :] = 9
    assert result["end_ns"].tolist() == [9]
    pd.testing.assert_frame_equal(prof.ops, before)


def test_an_interrupt_that_arrow_reports_is_a_timeout(monkeypatch):
    def batches(*_):
        raise OSError("INTERRUPT Error: Interrupted!")

    monkeypatch.setattr(sql, "_batches", batches)
    with pytest.raises(TimeoutError, match="did not finish in 60 s"):
        nested().sql("select 1")


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("limit", [float("inf"), 1e300])
def test_a_time_limit_may_be_infinite(limit):
    assert nested().sql("select 1 as one", time_limit_s=limit)["one"].tolist() == [1]


@pytest.mark.parametrize(
    "query",
    [
        "select 'infinity'::timestamp t", "select date '5877642-06-25' t",
        "select {'a': date '0044-03-15 (BC)'} t", "select union_value(a := 1) t",
        "select if(range > 150000, error('x'), 1) t from range(300000)",
        "select '\ud800' t",
    ],
)  # fmt: skip
def test_queries_raise_documented_errors_only(query):
    with pytest.raises(ValueError, match="the query"):
        synthetic_profile(activities=100).sql(query)


def test_a_query_that_runs_out_of_memory_while_it_is_read_says_so(monkeypatch):
    def fail(*_):
        raise OSError("Out of Memory Error: failed to allocate data")

    monkeypatch.setattr(sql, "_batches", fail)
    with pytest.raises(MemoryError, match="raise max_bytes"):
        synthetic_profile(activities=100).sql("select 1")


def test_a_lone_surrogate_in_an_argument_or_note_costs_no_query():
    prof = profile(
        ops=[op(1, "a", 0, 9, args={"layer": "x\ud800y\U0001f600"}),
             op(2, "b", 10, 19, args={"layer": r"\ud800", "other": "\udc00"})],
        info={"notes": ["\ud800"]},
    )  # fmt: skip
    layers = prof.sql("select args->>'layer' layer from ops order by op_id")["layer"]
    assert layers.tolist() == ["x\ufffdy\U0001f600", r"\ud800"]
    notes = prof.sql("select value->>0 note from info where key = 'notes'")
    assert notes["note"].tolist() == ["\ufffd"]
