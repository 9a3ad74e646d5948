"""Search by pattern: what is found, in which order, and what is refused."""

from __future__ import annotations

import re

import pytest
from tiny import call, kernel, op, profile

from epprof_nb.testing import synthetic_profile
from epprof_nb.views.queries import search
from epprof_nb.views.queries.event_order import Walk
from epprof_nb.views.queries.search import find, matching
from epprof_nb.views.view_model import ViewModel


@pytest.fixture(scope="module")
def prepared():
    ops = [op(1, "forward", 0, 100), op(2, "Backward", 100, 200)]
    calls = [call(10, 12, name="cuLaunchKernel"), call(110, 112, name="cuMemcpyHtoDAsync")]
    kernels = [kernel(20, 30, 1, name="gemm_forward"), kernel(100, 130, 2, name="gemm_back")]
    return ViewModel(profile(ops, kernels, calls))


def found(prepared, pattern):
    return Walk(prepared.profile, matching(prepared, pattern))


def walk(matches):
    return [matches.nth(n) for n in range(matches.count)]


def test_matches_come_in_the_order_of_time_over_all_tables(prepared):
    assert walk(found(prepared, "forward|back")) == [
        ("op", 0), ("act", 0), ("op", 1), ("act", 1)
    ]  # fmt: skip
    assert walk(found(prepared, "^cu")) == [("api", 0), ("api", 1)]


def test_case_matters_only_where_the_pattern_has_capitals(prepared):
    assert found(prepared, "back").count == 2
    assert walk(found(prepared, "Back")) == [("op", 1)]
    # The capital of a class of characters is no letter.
    assert found(prepared, r"BACK\S*").count == 0
    assert found(prepared, r"back\S*").count == 2


def test_a_search_starts_at_a_time_and_goes_round(prepared):
    matches = found(prepared, "gemm")
    assert matches.number_at(0) == 0
    assert matches.number_at(21) == 1
    assert matches.number_at(500) == 0


def test_nothing_matches_the_empty_pattern(prepared):
    assert found(prepared, "").count == 0


@pytest.mark.parametrize("pattern", ["(", "a{2", "[z-a]", "*"])
def test_what_is_no_pattern_is_refused_or_found_as_re_does(prepared, pattern):
    try:
        expected = re.compile(pattern)
    except re.error:
        with pytest.raises(ValueError, match="Not a regular expression"):
            found(prepared, pattern)
    else:
        names = ["a{2", "aa"]
        assert find(names, pattern) == [i for i, n in enumerate(names) if expected.search(n)]


def test_a_pattern_that_never_ends_is_ended(monkeypatch):
    monkeypatch.setattr(search, "_SECONDS", 0.4)
    with pytest.raises(ValueError, match="took more than"):
        find(["a" * 200 + "!"], "(a+)+$")


def test_a_pattern_of_absurd_length_is_refused(prepared):
    with pytest.raises(ValueError, match="400 characters"):
        found(prepared, "a" * 401)


def test_patterns_and_plain_words_find_the_same():
    names = ["Gemm<float>", "gemm", "add::gemm", "relu", "\ud800 lone", "GEMM"]
    assert find(names, "gemm") == find(names, "[g]emm") == [0, 1, 2, 5]
    assert find(names, "GEMM") == find(names, "GE[M]M") == [5]


def test_every_match_is_found_by_number():
    prepared = ViewModel(synthetic_profile(activities=4_000))
    matches = found(prepared, "gemm|memcpy|conv|backward")
    steps = walk(matches)
    frames = {"op": prepared.profile.ops, "api": prepared.profile.api_calls,
              "act": prepared.profile.activities}  # fmt: skip
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
