"""Search by pattern: matches, their order, and unsupported patterns."""

from __future__ import annotations

import itertools
import re
from types import SimpleNamespace

import pytest

from epprof_nb.testing import synthetic_profile
from epprof_nb.views.queries import search
from epprof_nb.views.queries.event_order import EventOrder
from epprof_nb.views.queries.search import match_names, matching_rows
from epprof_nb.views.view_model import ViewModel
from tests.helpers.tiny import call, kernel, op, profile


@pytest.fixture(scope="module")
def view_model():
    ops = [op(1, "forward", 0, 100), op(2, "Backward", 100, 200)]
    calls = [call(10, 12, name="cuLaunchKernel"), call(110, 112, name="cuMemcpyHtoDAsync")]
    kernels = [kernel(20, 30, 1, name="gemm_forward"), kernel(100, 130, 2, name="gemm_back")]
    return ViewModel(profile(ops, kernels, calls))


def found(view_model, pattern):
    return EventOrder(view_model.profile, matching_rows(view_model, pattern))


def walk(matches):
    return [matches.at(n) for n in range(matches.count)]


def test_matches_come_in_the_order_of_time_over_all_tables(view_model):
    assert walk(found(view_model, "forward|back")) == [
        ("op", 0), ("act", 0), ("op", 1), ("act", 1)
    ]  # fmt: skip
    assert walk(found(view_model, "^cu")) == [("api", 0), ("api", 1)]


def test_case_matters_only_where_the_pattern_has_capitals(view_model):
    assert found(view_model, "back").count == 2
    assert walk(found(view_model, "Back")) == [("op", 1)]
    # The capital of a class of characters is not a letter.
    assert found(view_model, r"BACK\S*").count == 0
    assert found(view_model, r"back\S*").count == 2


def test_a_search_starts_at_a_time_and_goes_round(view_model):
    matches = found(view_model, "gemm")
    assert matches.index_at(0) == 0
    assert matches.index_at(21) == 1
    assert matches.index_at(500) == 0


def test_nothing_matches_the_empty_pattern(view_model):
    assert found(view_model, "").count == 0


def test_what_is_no_pattern_is_refused(view_model):
    for pattern in ("(", "[z-a]", "*", "a)"):
        with pytest.raises(ValueError, match="Not a regular expression"):
            found(view_model, pattern)
    assert match_names(["\ud800 lone"], "\ud800") == [0]
    assert match_names(["a{2", "aa"], "a{2") == [0]  # as in `re`, no repeat


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("a(?=b)", r"Look-around, \(\?=...\), is"),
        ("a(?!b)", "Look-around"),
        ("(?<=a)b", "Look-around"),
        ("(?<!a)b", "Look-around"),
        (r"(a)\1", r"A back-reference, \\1, is"),
        ("(?P<x>a)(?P=x)", "A back-reference"),
        ("(?>a)", r"\(\?> is"),
        (r"a\Z", r"\\Z is"),
        ("a{1001}", "Repeating more than 1,000 times"),
        ("((((((a){50}){50}){50}){50}){50}){50}", "Repeating more than 1,000 times"),
    ],
)
def test_what_re2_has_not_is_refused_before_any_name_is_searched(pattern, what):
    names = iter(["a"])
    with pytest.raises(ValueError, match=f"{what}.* not supported; patterns use RE2 syntax."):
        match_names(names, pattern)
    assert next(names) == "a"


def test_a_pattern_of_absurd_size_is_refused():
    with pytest.raises(ValueError, match="too large"):
        match_names(["a"], "(.{0,1000})" * 30)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)+$", "(a|aa)+$", "(.*)*b$", "((a*)*)*c"])
def test_patterns_that_take_exponential_time_elsewhere_end(pattern):
    # With backtracking, the first name alone would take longer than the age of the universe.
    assert match_names(["a" * 2000 + "!"] * 100, pattern) == []


def test_an_expensive_pattern_is_stopped(monkeypatch):
    seconds = itertools.count()  # each look at the clock is a second later
    monkeypatch.setattr(search, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    names = iter(["name"] * 100)
    with pytest.raises(ValueError, match="takes more than 3 s"):
        match_names(names, "gemm")
    assert len(list(names)) == 96


def test_a_pattern_of_absurd_length_is_refused(view_model):
    with pytest.raises(ValueError, match="400 characters"):
        found(view_model, "a" * 401)


def test_patterns_and_plain_words_find_the_same():
    names = ["Gemm<float>", "gemm", "add::gemm", "relu", "\ud800 lone", "GEMM"]
    assert match_names(names, "gemm") == match_names(names, "[g]emm") == [0, 1, 2, 5]
    assert match_names(names, "GEMM") == match_names(names, "GE[M]M") == [5]


def test_every_match_is_found_by_number():
    view_model = ViewModel(synthetic_profile(activities=4_000))
    matches = found(view_model, "gemm|memcpy|conv|backward")
    steps = walk(matches)
    frames = {"op": view_model.profile.ops, "api": view_model.profile.api_calls,
              "act": view_model.profile.activities}  # fmt: skip
    starts = [int(frames[prefix]["start_ns"].iloc[row]) for prefix, row in steps]
    assert starts == sorted(starts)
    expected = {
        (prefix, row)
        for prefix, frame in frames.items()
        for row, name in enumerate(frame["name"])
        if re.search("gemm|memcpy|conv|backward", name, re.IGNORECASE)
    }
    assert len(steps) == len(set(steps))
    assert set(steps) == expected
