"""``epprof compare``: comparison of saved profiles, with exit codes for scripts."""

from __future__ import annotations

import re
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epprof_nb.core.errors import EpprofError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.compare.refusals import Allowed
    from epprof_nb.commands.recorded_scripts import Script
    from epprof_nb.profiles import Profile

NOT_SLOWER, SLOWER, NOT_COMPARABLE, UNUSABLE_FILE = 0, 1, 3, 4
"""Exit codes; 2 is Click's for a wrong command line."""


@dataclass(frozen=True, slots=True)
class Output:
    """Format of the output, and the change above which a comparison fails.

    Attributes
    ----------
    fail_above
        Relative change, as 0.03. The new code is slower if all of the interval is above it.
    markdown
        Whether to print Markdown.
    allow
        See `epprof_nb.compare`.
    html
        Path of an HTML page to write, if any.
    """

    fail_above: float
    markdown: bool
    allow: tuple[Allowed, ...]
    html: Path | None = None


def compare_files(old: Sequence[str], new: Sequence[str], output: Output) -> int:
    """Print the comparison of the recordings of two sides, and return the exit code."""
    from epprof_nb.profiles import load

    try:
        sides = [[load(path) for path in side] for side in (old, new)]
    except (EpprofError, OSError) as error:
        click.echo(f"Error: {error}", err=True)
        return UNUSABLE_FILE
    return _compare(sides, output)


def compare_scripts(
    old: Script, new: Script, rounds: int, keep: Path | None, output: Output
) -> int:
    """Record two scripts in turn, print their comparison, and return the exit code.

    Parameters
    ----------
    old, new
        The scripts.
    rounds
        Recordings of each script.
    keep
        Folder for the recordings; None to remove them.
    output
        What to print.
    """
    from epprof_nb.commands.recorded_scripts import ScriptFailedError, record_rounds
    from epprof_nb.data.repeats import repeat_bounds

    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        try:
            sides = record_rounds((old, new), rounds, folder)
        except (EpprofError, OSError, ScriptFailedError) as error:
            click.echo(f"Error: {error}", err=True)
            return UNUSABLE_FILE
    everything = [profile for side in sides for profile in side]
    if all(len(repeat_bounds(profile.info)[0]) < 2 for profile in everything):
        # Each run counts as a repeat, and those of a round follow each other.
        for number, pair in enumerate(zip(*sides, strict=True)):
            for side, profile in enumerate(pair):
                profile.info["alternated"] = {"recording": f"round {number:03}", "side": side}
    return _compare(sides, output)


def _compare(sides: Sequence[Sequence[Profile]], output: Output) -> int:
    from epprof_nb.views.comparison import compare

    result = compare(*sides, allow=output.allow)
    text = result.to_markdown() if output.markdown else repr(result)
    click.echo(text, nl=not output.markdown)
    if output.html is not None:
        result.to_html(output.html)
    if result.verdict == "cannot be compared":
        return NOT_COMPARABLE
    return SLOWER if (result.change_low or 0) > output.fail_above else NOT_SLOWER


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
