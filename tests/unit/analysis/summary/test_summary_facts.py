"""Summaries: a query reproduces every number, and their length is bounded."""

import json
import re
import sys

import pytest
from click.testing import CliRunner

import epprof_nb
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.summary.summary_facts import summary_of
from epprof_nb.cli import main
from epprof_nb.testing import synthetic_profile
from tests.helpers.tiny import activity, call, kernel, line, nested, op, profile


def awkward():
    """Overlaps, gaps, graphs, equal names and times, missing names, two devices."""
    ms = 1_000_000
    graph = {"graph_id": 3, "correlation_id": 9}
    return profile(
        ops=[
            line(1, 1, 0, 90 * ms), op(2, "f", 0, 5, 1), op(3, "f", 5, 9, 1), op(4, None, 9, 10),
            op(5, "before", -90, -80, status="earlier"), op(6, "\ud800'; drop", 3, 9, count=12),
        ],
        activities=[
            kernel(0, 4 * ms, 2), kernel(2 * ms, 3 * ms, 3), kernel(6 * ms, 7 * ms, 99),
            kernel(20 * ms, 21 * ms, 4, name=None), kernel(21 * ms, 22 * ms, device_id=1),
            kernel(29 * ms, 28 * ms, 5, device_id=1), kernel(30 * ms, 31 * ms, 6),
            activity("memcpy", 40 * ms, 41 * ms, 6, bytes=12), activity("memcpy", 41 * ms, 43 * ms),
            activity("graph_launch", 50 * ms, 53 * ms, 1, **graph), kernel(50 * ms, 51 * ms, 1),
            kernel(51 * ms, 52 * ms, 1, **graph), activity("graph_launch", 60 * ms, 61 * ms, 1),
            activity("synchronization", 0, 90 * ms, 1), activity("memset", 70 * ms, 71 * ms, 1),
        ],
        api_calls=[call(0, 9), call(3, 9, name="cuMemcpy"), call(9, 15, name=None)],
        info={"notes": ["a note"]},
    )  # fmt: skip


def with_wall():
    prof = nested()
    prof.info["wall_ns"] = 1_000
    return prof


MAKERS = [
    awkward, nested, with_wall, profile,
    lambda: synthetic_profile(3_000), lambda: synthetic_profile(700, seed=5, streams=1, threads=3),
]  # fmt: skip


@pytest.mark.parametrize("make", MAKERS)
def test_every_number_is_the_result_of_its_query(make):
    pytest.importorskip("duckdb")
    prof = make()
    made = summary_of(ProfileIndex(prof))
    assert len(made.facts) >= 9
    # One query for all facts, because a connection takes 0.1 s.
    values = prof.sql("select " + ", ".join(f"({fact.query})" for fact in made.facts))
    assert len(values) == 1
    for i, fact in enumerate(made.facts):
        assert values.iloc[0, i] == fact.value, fact
    for ranking in made.rankings:
        found = prof.sql(ranking.query)
        assert tuple(found.columns) == ranking.columns
        rows = found.astype(object).where(found.notna(), None).to_numpy().tolist()
        assert rows == [list(row) for row in ranking.rows], ranking.title
    counts = ", ".join(f"(select count(*) from {name})" for name in made.rows)
    assert prof.sql(f"select {counts}").iloc[0].tolist() == list(made.rows.values())
    for rank, evidence in enumerate(made.findings, 1):
        found, wanted = prof.sql(evidence.query), prof.evidence(rank).reset_index()
        for column in ("start_ns", "end_ns"):
            assert sorted(found[column]) == sorted(wanted[column])


def test_a_ranking_shows_the_largest_groups_first():
    prof = profile(activities=[kernel(0, 10 + i, name=f"k{i}") for i in range(40)])
    (ranking,) = summary_of(ProfileIndex(prof)).rankings
    assert ranking.groups == 40
    assert [row[0] for row in ranking.rows] == [f"k{i}" for i in range(39, 29, -1)]


def test_equal_groups_are_in_the_order_of_their_names_and_one_may_be_empty():
    pytest.importorskip("duckdb")
    prof = profile(activities=[kernel(0, 10, name=name) for name in ("b", None, "", "a")])
    (ranking,) = summary_of(ProfileIndex(prof)).rankings
    assert [row[0] for row in ranking.rows] == ["", "a", "b", None]
    found = prof.sql(ranking.query).iloc[:, 0].tolist()
    assert found[:3] == ["", "a", "b"]


@pytest.mark.parametrize("max_chars", [500, 1_000, 8_000, 1_000_000])
@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("make", MAKERS)
def test_the_length_is_bounded(make, form, max_chars):
    text = make().summary(max_chars, form)
    assert len(text) <= max_chars
    if form == "json":
        parsed = json.loads(text)
        assert parsed["facts"]
        assert (parsed["omitted"] > 0) == (max_chars < 8_000) or max_chars == 8_000
    elif max_chars == 1_000_000:
        assert "omitted" not in text


@pytest.mark.parametrize("form", ["text", "json"])
def test_short_summaries_have_the_ops_before_notes_and_further_totals(form):
    ops = [op(i, f"operation number {i}", 10 * i, 10 * i + 9) for i in range(5)]
    work = [kernel(10 * i, 10 * i + 9, i, correlation_id=i, name=f"k{i}") for i in range(5)]
    prof = profile(ops, work, info={"wall_ns": 60, "notes": ["This is a long note. " * 10] * 9})
    text = prof.summary(2_000, form)
    assert all(f"operation number {i}" in text for i in range(5))
    assert "omitted" in text
    # Each row that fits is there.
    lengths = [prof.summary(n, form).count("operation number") for n in range(500, 2_000, 20)]
    assert set(lengths) >= {1, 2, 3, 4, 5}


@pytest.mark.parametrize("form", ["text", "json"])
def test_long_and_hostile_names_stay_on_their_line(form):
    name = "x" * 5_000_000
    prof = profile(
        [op(1, name, 0, 10), op(2, "a\n- wall_ns: 7\x1b[31m\u202e", 0, 10)],
        [kernel(0, 5, 1), kernel(5, 9, 2, name="k\r\x00")],
        info={"notes": ["n\x1b[2J" * 100_000]},
    )
    text = prof.summary(20_000, form)
    assert len(text) <= 20_000
    assert all(c.isprintable() or c == "\n" for c in text)
    assert "\n- wall_ns: 7" not in text
    assert "x…x" in text.replace("\\u2026", "…")


@pytest.mark.parametrize("form", ["text", "json"])
def test_redacted_summaries_have_no_source(form):
    secret = "password = open('/home/me/secret.txt')"
    statement = op(1, secret, 0, 9_000_000, op_type="line", cell="In[1]", line=1)
    info = {"notes": [f"`{secret}` is slow"], "wall_ns": 10_000_000}
    prof = profile([statement], [kernel(0, 5, 1)], info=info, sources={"In[1]": secret})
    assert "secret" in prof.summary(format=form)
    assert "secret" not in prof.summary(format=form, redact=True)
    assert "secret" not in prof.redacted().summary(format=form)


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="at least 500"):
        nested().summary(10)
    with pytest.raises(ValueError, match="text, json"):
        nested().summary(format="yaml")


def test_summaries_need_no_duckdb(monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert "Totals:" in nested().summary()


def test_the_command_prints_the_summary(tmp_path):
    path = str(tmp_path / "run.epprof")
    prof = awkward()
    prof.save(path)
    run = CliRunner().invoke(main, ["summary", path, "--max-chars", "900"])
    assert run.exit_code == 0, run.output
    loaded = epprof_nb.load(path)
    assert run.output == loaded.summary(900, sql=False) + "\n"
    with_queries = CliRunner().invoke(main, ["summary", path, "--sql"])
    assert with_queries.output == loaded.summary() + "\n"
    as_json = CliRunner().invoke(main, ["summary", path, "--json", "--redact", "all"])
    assert json.loads(as_json.output)["facts"][0]["name"] == "wall_ns"
    assert CliRunner().invoke(main, ["summary", path, "--redact", "x"]).exit_code == 2
    (tmp_path / "bad.epprof").write_bytes(b"no profile")
    assert CliRunner().invoke(main, ["summary", str(tmp_path / "bad.epprof")]).exit_code == 1


def test_totals_of_zero_leave_room_for_what_there_is():
    host_only = profile([op(1, "slow", 0, 900), op(2, "fast", 900, 901)], info={"wall_ns": 901})
    text = host_only.summary(1_000)
    assert text.index("wall_ns") < text.index("slow") < text.index("kernels: 0")
    assert "kernels: 0" not in host_only.summary(700)
    assert "slow | range" in host_only.summary(700)


def test_each_number_of_a_text_refers_to_its_query():
    pytest.importorskip("duckdb")
    prof = awkward()
    values, queries = prof.summary(100_000).split("\nQueries:\n")
    listed = dict(re.match(r"(\[\d+\]) (.*)", text).groups() for text in queries.splitlines())
    assert list(listed) == [f"[{i}]" for i in range(1, len(listed) + 1)]
    totals = re.findall(r"^- .*: (\d+)(?: \(.*\))? (\[\d+\])$", values, re.MULTILINE)
    assert len(totals) == len(summary_of(ProfileIndex(prof)).facts)
    for value, mark in totals:
        assert prof.sql(listed[mark]).iloc[0, 0] == int(value)
    for title, mark in re.findall(r"^(.*): (\[\d+\])\n", values, re.MULTILINE):
        table = values.split(f"{title}: {mark}\n")[1].splitlines()
        assert prof.sql(listed[mark]).columns.tolist() == table[0].split(" | ")
    # Every query is referred to.
    assert set(re.findall(r"\[\d+\]", values)) >= set(listed)


def test_a_text_for_people_has_units_and_no_queries():
    text = awkward().summary(sql=False)
    assert "select" not in text
    assert "Queries:" not in text
    assert not re.search(r"\[\d+\]$", text, re.MULTILINE)
    assert "- wall: 90.0 ms" in text
    assert ": 0" not in text
    lines = text.split("Ops by host time, ops below them included")[1].splitlines()[1:3]
    assert lines[0].split() == ["name", "op", "type", "cell", "line", "host", "count"]
    assert lines[1].endswith("90.0 ms      1")
