"""``epprof compare``: comparison of saved profiles, with exit codes for scripts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from epprof_nb.core.errors import EpprofError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NOT_SLOWER, SLOWER, NOT_COMPARABLE, UNUSABLE_FILE = 0, 1, 3, 4
"""Exit codes; 2 is Click's for a wrong command line."""


def run(
    old: Sequence[Path],
    new: Sequence[Path],
    *,
    fail_above: float,
    markdown: bool,
    allow: Sequence[str],
) -> int:
    """Print the comparison of two sides and return the exit code.

    Parameters
    ----------
    old, new
        Files of the recordings of each side.
    fail_above
        Relative change, as 0.03. The new code is slower if all of the interval is above it.
    markdown
        Whether to print Markdown.
    allow
        See `epprof_nb.compare`.
    """
    from epprof_nb.profiles import load
    from epprof_nb.views.comparison import compare

    try:
        sides = [[load(path) for path in side] for side in (old, new)]
    except (EpprofError, OSError) as error:
        click.echo(f"Error: {error}", err=True)
        return UNUSABLE_FILE
    result = compare(*sides, allow=tuple(allow))  # type: ignore[arg-type] # checked by Click
    click.echo(result.to_markdown() if markdown else repr(result), nl=not markdown)
    if result.verdict == "cannot be compared":
        return NOT_COMPARABLE
    return SLOWER if (result.change_low or 0) > fail_above else NOT_SLOWER


def parse_percent(text: str) -> float:
    """Return the fraction of a text such as ``3%``.

    Raises
    ------
    ValueError
        If the text is something else.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if match is None:
        raise ValueError(f"{text!r} is no percentage. Write it as 3%.")
    return float(match[1]) / 100
