"""Statements of sources that have only some functions of a file."""

import pytest

from epprof_nb.analysis.base.source_text import statement_starts

METHOD = "    def add(self, x):\n        self.all.append(\n            x)\n"


@pytest.mark.parametrize(
    ("text", "starts"),
    {
        "a method": ("\n\n" + METHOD, {3: 3, 4: 4, 5: 4}),
        "two methods": (
            "\n" + METHOD + "\n" + METHOD, {2: 2, 3: 3, 4: 3, 6: 6, 7: 7, 8: 7},
        ),
        "of two classes, one of them nested": (
            "\n        def f(self):\n            return (\n                1)\n\n" + METHOD,
            {2: 2, 3: 3, 4: 3, 6: 6, 7: 7, 8: 7},
        ),
        "before a function": (
            "\n" + METHOD + "\ndef g():\n    return (\n        2)\n",
            {2: 2, 3: 3, 4: 3, 6: 6, 7: 7, 8: 7},
        ),
        "after a function": (
            "def g():\n    return (\n        2)\n\n" + METHOD,
            {1: 1, 2: 2, 3: 2, 5: 5, 6: 6, 7: 6},
        ),
        "no code": ("    def f(:", {}),
    }.values(),
)  # fmt: skip
def test_methods_without_their_class(text, starts):
    lines = text.split("\n")
    found = statement_starts(text).items()
    assert {line: start for line, start in found if lines[line - 1].strip()} == starts
