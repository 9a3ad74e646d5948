"""Numbers are written by the rules that the viewer follows, too."""

from __future__ import annotations

import json

import pytest

from epprof_nb.util import format as formatting
from tests.paths import DATA

VECTORS = json.loads((DATA / "number_format.json").read_text("utf-8"))


@pytest.mark.parametrize("name", ["percent", "duration", "size"])
def test_numbers_follow_the_shared_vectors(name):
    written = [(value, getattr(formatting, name)(value)) for value, _ in VECTORS[name]]
    assert written == [(value, text) for value, text in VECTORS[name]]


def test_counts_follow_the_shared_vectors():
    for value, text in VECTORS["count"]:
        assert formatting.plural(value, "copy", "copies") == f"{text} copies"


def test_names_follow_the_shared_vectors():
    for text, limit, short in VECTORS["shorten"]:
        assert formatting.shorten(text, limit) == short
        assert len(short) <= limit
