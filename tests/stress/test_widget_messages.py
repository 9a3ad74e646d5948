"""Malformed messages of a front end: each is answered, none raises or breaks the view."""

import random

import pytest

from epprof_nb.testing import synthetic_profile
from tests.stress import FACTOR

pytest.importorskip("anywidget")

KINDS = [
    "first", "headline", "window", "counters", "describe", "table", "tree", "source", "related",
    "seek", "by_range", "selected", "mounted", "unknown", None, [], {}, 3,
]  # fmt: skip
KEYS = [
    "start", "end", "width", "lanes", "selection", "prefix", "row", "by", "sort", "descending",
    "pattern", "window", "number", "at", "time_range", "what", "request", "kind", "name", "id",
    "path",
]  # fmt: skip
TEXTS = ["", "act", "op", "api", "kernel", "stream", "search", "rows", "(", "\ud800", "x" * 5000]
NUMBERS = [0, 1, -1, 10, 2**31, 2**63, -(2**70), 0.5, 1e300, float("nan"), float("inf"), True]


def value(rng: random.Random, depth: int = 0) -> object:
    choice = rng.random()
    if choice < 0.35 or depth > 3:
        return rng.choice(NUMBERS)
    if choice < 0.6:
        return rng.choice(TEXTS)
    if choice < 0.7:
        return None
    if choice < 0.85:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(KEYS): value(rng, depth + 1) for _ in range(rng.randrange(4))}


def message(rng: random.Random) -> object:
    if rng.random() < 0.05:
        return value(rng)
    content = {rng.choice(KEYS): value(rng) for _ in range(rng.randrange(8))}
    content["type"] = rng.choice(KINDS)
    if rng.random() < 0.5:  # a selection that is nearly right
        content["selection"] = {"what": rng.choice(TEXTS), rng.choice(KEYS): value(rng)}
    return content


def test_every_malformed_message_is_answered(monkeypatch):
    from epprof_nb.views.widget.requests import is_request
    from epprof_nb.views.widget.widget import LiveView

    live = LiveView(synthetic_profile(activities=50), tab="timeline")
    answers: list[dict] = []
    monkeypatch.setattr(live, "send", lambda content, buffers=None: answers.append(content))
    rng = random.Random(7)
    refused = 0
    for _ in range(1000 * FACTOR):
        content = message(rng)
        answers.clear()
        live._on_message(live, content, [])
        kind = content.get("type") if isinstance(content, dict) else None
        if is_request(kind):
            (answer,) = answers
            assert answer["type"] == kind
            assert answer["request"] == content.get("request") or "request" in content
        elif kind not in ("mounted", "selected"):
            assert "error" in answers[0]
        refused += bool(answers) and "error" in answers[0]
        assert len(live.selection) <= 50
    live.close()
    assert refused > 300 * FACTOR
