"""Matching of ops under one parent: edited, moved, inserted and repeated statements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epprof_nb import compare
from epprof_nb.analysis.compare import match_siblings as siblings
from epprof_nb.analysis.compare.match_siblings import Matching
from tests.helpers.repeated import repeated
from tests.helpers.tiny import rows

MS = 1_000_000


def match_siblings(before, after):
    return Matching().match([(before, after)])[0]


def matched(before, after):
    """Statements as pairs of old and new text; edited ones separately."""
    equal, renamed = match_siblings([(s, "line") for s in before], [(s, "line") for s in after])
    return tuple({before[i]: after[j] for i, j in found.items()} for found in (equal, renamed))


@pytest.mark.parametrize(
    ("before", "after", "renamed"),
    [
        # One statement was edited, another inserted beside it.
        (["x = f(a)", "end()"], ["log(a)", "x = g(a)", "end()"], {"x = f(a)": "x = g(a)"}),
        (["x = f(a)", "end()"], ["x = g(a)", "log(a)", "end()"], {"x = f(a)": "x = g(a)"}),
        # As many statements on both sides, but not the same ones.
        (
            ["a = f(x)", "b = g(y)", "end()"],
            ["c = h(z)", "a = f2(x)", "end()"],
            {"a = f(x)": "a = f2(x)"},
        ),
        # An operator changed: all words are the same.
        (["y = a @ b", "end()"], ["log(y)", "y = a * b", "end()"], {"y = a @ b": "y = a * b"}),
        # Arguments added, or taken away.
        (["step()"], ["step(attention_ms=3)"], {"step()": "step(attention_ms=3)"}),
        (["y = f(x, scale=2, shift=3)"], ["y = f()"], {"y = f(x, scale=2, shift=3)": "y = f()"}),
        # A function called in a statement of another kind.
        (["step()"], ["for batch in loader: report.append(step())"], {}),
        # A short call got arguments.
        (
            ["step()", "end()"],
            ["step(attention=0.97)", "end()"],
            {"step()": "step(attention=0.97)"},
        ),
        (
            ["y = f(x)", "end()"],
            ["y = f(x, w, axis=1).sum()", "end()"],
            {"y = f(x)": "y = f(x, w, axis=1).sum()"},
        ),
        # Unlike statements in the same place.
        (["f(x)", "end()"], ["y = load(f, x, path)", "end()"], {}),
        (["load()", "y.sum()"], ["read_all(path)", "y.sum()"], {}),
        (["for batch in data[:4]:"], ["x=1"], {}),
        # More of them on one side: it is not known which one took the place.
        (["load()", "y.sum()"], ["alpha(1)", "beta(2)", "y.sum()"], {}),
        # Another place.
        (["x = f(a)", "mid()", "end()"], ["mid()", "end()", "x = g(a)"], {}),
    ],
)
def test_edited_statements(before, after, renamed):
    equal, found = matched(before, after)
    assert found == renamed
    assert equal == {text: text for text in before if text in after}
    assert matched(after, before)[1] == {new: old for old, new in renamed.items()}


def test_a_moved_statement_is_the_same_and_no_neighbour():
    equal, renamed = matched(
        ["seed()", "x = f(a)", "y = h(x)", "y.sum()", "end()"],
        ["x = g(a)", "y = h(x)", "y.sum()", "seed()", "end()"],
    )
    assert equal.keys() == {"seed()", "y = h(x)", "y.sum()", "end()"}
    assert renamed == {"x = f(a)": "x = g(a)"}


def test_equal_statements_are_matched_by_their_neighbours():
    before = [(name, "line") for name in ("a()", "step()", "b()", "step()", "c()")]
    after = [(name, "line") for name in ("a()", "b()", "step()", "c()")]
    assert match_siblings(before, after) == ({0: 0, 2: 1, 3: 2, 4: 3}, {})


def test_ops_of_another_type_do_not_take_the_place():
    assert match_siblings([("f", "range"), ("g", "line")], [("f2", "line"), ("g", "line")]) == (
        {1: 1},
        {},
    )


def test_named_ranges_of_other_names_take_the_place():
    before, after = ([(name, "range"), ("end", "range")] for name in ("load", "read all"))
    assert match_siblings(before, after) == ({1: 1}, {0: 0})


@given(*[st.lists(st.sampled_from(["f(x)", "g(x)", "x = f(y)", "x = g(y)", "h", "h2"]))] * 2)
def test_exchanging_the_sides_exchanges_the_matches(before, after):
    forth = match_siblings(*([(s, "line") for s in side] for side in (before, after)))
    back = match_siblings(*([(s, "line") for s in side] for side in (after, before)))
    for one, other in zip(forth, back, strict=True):
        assert {j: i for i, j in one.items()} == other
    equal, renamed = forth
    assert not equal.keys() & renamed.keys()
    assert all(before[i] == after[j] for i, j in equal.items())
    assert all(before[i] != after[j] for i, j in renamed.items())
    assert len({*equal.values(), *renamed.values()}) == len(equal) + len(renamed)


def test_many_ops_are_matched_without_comparing_all_texts(monkeypatch):
    monkeypatch.setattr(siblings, "_similarity", lambda *_: pytest.fail("too many comparisons"))
    before = [(f"/old/{i}/MatMul", "MatMul") for i in range(4_000)]
    after = [(f"/new/{i}/MatMul", "MatMul") for i in range(4_000)]
    same = {i: i for i in range(4_000)}
    assert match_siblings(before, after) == ({}, same)
    equal = [("step()", "line")] * 4_000
    assert match_siblings(equal, equal) == (same, {})


def test_an_edited_line_of_a_recording_is_one_row():
    old = repeated({"load(x)": MS, "x = f(a)": 10 * MS, "x.sum()": MS})
    new = repeated({"load(x)": MS, "check(x)": MS, "x = g(a)": 5 * MS, "x.sum()": MS}, seed=1)
    ops = rows(compare(old, new).ops)
    assert {name: row["status"] for name, row in ops.items()} == {
        "load(x)": "matched", "check(x)": "added", "x = g(a)": "renamed", "x.sum()": "matched",
    }  # fmt: skip
    assert ops["x = g(a)"]["old_name"] == "x = f(a)"
    assert ops["x = g(a)"]["verdict"] == "faster"


def test_many_places_with_edited_statements_share_the_comparisons(monkeypatch):
    compared = []
    monkeypatch.setattr(siblings, "_similarity", lambda *texts: compared.append(texts) or 0.0)
    lines = [[(f"{side} = {i}", "line") for i in range(200)] for side in "ab"]
    for side in lines:
        side[::20] = [(f"anchor {i}", "line") for i in range(10)]
    assert len(match_siblings(*lines)[0]) == 10
    assert 0 < len(compared) <= siblings._MAX_COMPARED


def test_long_texts_under_one_parent_are_not_compared(monkeypatch):
    monkeypatch.setattr(siblings, "_similarity", lambda *_: pytest.fail("too many comparisons"))
    before, after = (
        [(f"{name}(argument_{i})" + "q" * 150, "line") for i in range(50)] for name in ("f", "g")
    )
    assert match_siblings(before, after) == ({}, {i: i for i in range(50)})


def test_many_equal_ops_in_another_order_are_matched_without_alignment(monkeypatch):
    monkeypatch.setattr(siblings, "SequenceMatcher", lambda *_, **__: pytest.fail("too much work"))
    before = [("start", "line"), *((f"x{i % 40}", "line") for i in range(6_000))]
    after = [("start", "line"), *((f"x{i * 7 % 40}", "line") for i in range(6_000))]
    equal, renamed = match_siblings(before, after)
    assert equal[0] == 0
    assert sorted(equal) == sorted(equal.values()) == list(range(6_001))
    assert not renamed


def test_all_parents_share_the_work_whatever_their_order(monkeypatch):
    monkeypatch.setattr(siblings, "_TEXT_UNITS", 10 * 26**2)
    small = [([(f"old{i:3}", "line")], [(f"new{i:3}", "line")] * 2) for i in range(10)]
    large = [([("old", "line")] * 9, [("new", "line")] * 8)]
    similar = []
    monkeypatch.setattr(siblings, "_similarity", lambda *texts: similar.append(texts) or 0.0)
    siblings.Matching().match(large + small[:5])
    of_first = len(similar)
    siblings.Matching().match(small[:5] + large)
    assert of_first == len(similar) - of_first == 10
    similar.clear()
    matching = siblings.Matching()
    matching.match(small[:5])
    matching.match(small[5:])
    assert len(similar) == 10
