"""Programs as in notebooks, from ``tests/benchmarks/notebooks``."""

from __future__ import annotations

import re

from tests.paths import TESTS

FOLDER = TESTS / "benchmarks" / "notebooks"
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.md")))
"""Names of the files, each with programs."""
_PROGRAM = re.compile(
    r"^## ([^\n]+)\n\n```python\n(.*?)```\n\n```python\n(.*?)```$", re.DOTALL | re.MULTILINE
)


def programs_of(name: str) -> dict[str, tuple[str, str]]:
    """Return the programs of a file: the cell that prepares each, and the cell to profile."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    return {title: (setup, cell) for title, setup, cell in _PROGRAM.findall(text)}
