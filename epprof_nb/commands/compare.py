"""``epprof compare``: comparison of saved profiles, with exit codes for scripts."""

from __future__ import annotations

import re
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epprof_nb.commands.parameters import NEW_FILE, refuse_same_file, refuse_unwritable
from epprof_nb.core.errors import EpprofError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.compare.reasons_not_to_compare import Allowed
    from epprof_nb.commands.recorded_scripts import Script
    from epprof_nb.profiles import Profile
    from epprof_nb.views.comparison import Comparison

_NOTICED = 2.0
"""A comparison is precise enough if it finds changes of this many times the limit."""
NOT_SLOWER, SLOWER, NO_VERDICT, UNUSABLE_FILE = 0, 1, 3, 4
"""Exit codes; 2 is Click's for a wrong command line."""


@dataclass(frozen=True, slots=True)
class Output:
    """Format of the output, and the change above which a comparison fails.

    Attributes
    ----------
    fail_above
        Relative change, as 0.03. The new code is slower if the whole interval is above it. None if
        the time does not count.
    fail_above_memory
        Relative change of the memory in use at the peak above which it fails; None if it does not
        count.
    markdown
        Whether to print Markdown.
    allow
        See `epprof_nb.compare`.
    html
        Path of an HTML page to write, if any.
    """

    fail_above: float | None
    fail_above_memory: float | None
    markdown: bool
    allow: tuple[Allowed, ...]
    html: Path | None = None


@click.command()
@click.option(
    "--fail-above",
    metavar="PERCENT",
    help="Exit with 1 only if the new code is slower by more than this, with 95 % confidence, and "
    "with 3 if the recordings vary too much to tell.  [default: 0%, or none with "
    "--fail-above-memory]",
)
@click.option(
    "--fail-above-memory",
    metavar="PERCENT",
    help="Exit with 1 if the new code has more bytes in use at the peak by more than this. Record "
    "both with --detail memory; --run does so. Without --fail-above, the time does not count.",
)
@click.option("--html", type=NEW_FILE, help="Path of an HTML page with both timelines.")
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@click.option(
    "--allow",
    multiple=True,
    metavar="DIFFERENCE",
    help="Compare despite different devices, clocks, counts (executions of an op), shapes, "
    "options (of recording), or dropped records.",
)
@click.option("--more-old", multiple=True, type=NEW_FILE, help="Another recording of the old code.")
@click.option("--more-new", multiple=True, type=NEW_FILE, help="Another recording of the new code.")
@click.option(
    "--run",
    "run_scripts",
    is_flag=True,
    help="OLD and NEW are commands such as 'python train.py', which are recorded in turn.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 999),
    default=10,
    show_default=True,
    help="With --run: recordings of each command.",
)
@click.option(
    "--keep",
    type=click.Path(file_okay=False, exists=True, writable=True, path_type=Path),
    help="With --run: folder to keep the recordings in.",
)
@click.argument("old")
@click.argument("new")
def compare(
    *,
    old: str,
    new: str,
    more_old: tuple[Path, ...],
    more_new: tuple[Path, ...],
    run_scripts: bool,
    rounds: int,
    keep: Path | None,
    fail_above: str | None,
    fail_above_memory: str | None,
    html: Path | None,
    markdown: bool,
    allow: tuple[str, ...],
) -> None:
    """Compare two saved profiles of code that ran with --repeat or in steps.

    With --run, two scripts are run and compared. A script may begin each step with
    epprof_nb.step(). Without steps, whole runs are compared, which needs 10 rounds or more.

    Exit codes: 0 the new code is not slower, 1 it is slower or holds more memory, 3 they cannot be
    compared or vary too much to tell (or to find a change of --fail-above), 4 a file cannot be used
    or a script failed.
    """
    from epprof_nb.analysis.compare.reasons_not_to_compare import ALLOWED
    from epprof_nb.commands.recorded_scripts import Script

    for name in allow:
        if name not in ALLOWED:
            raise click.BadParameter(
                f"{name} is not one of {', '.join(ALLOWED)}", param_hint="--allow"
            )
    if fail_above is None and fail_above_memory is None:
        fail_above = "0%"
    limits = (
        _limit(fail_above, "--fail-above"), _limit(fail_above_memory, "--fail-above-memory")
    )  # fmt: skip
    if html is not None:
        refuse_unwritable(html, "--html")
        files = {} if run_scripts else {"OLD": Path(old), "NEW": Path(new)}
        refuse_same_file("--html", html, {**files})
    output = Output(*limits, markdown, allow, html)  # type: ignore[arg-type] # checked above
    if not run_scripts:
        if keep is not None:
            raise click.UsageError("--keep needs --run.")
        sides = ([old, *map(str, more_old)], [new, *map(str, more_new)])
        sys.exit(compare_files(*sides, output))
    if more_old or more_new:
        raise click.UsageError("--more-old and --more-new name files; --run records --rounds.")
    try:
        scripts = Script.parse(old), Script.parse(new)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    sys.exit(compare_scripts(*scripts, rounds, keep, output))


def _limit(text: str | None, option: str) -> float | None:
    try:
        return None if text is None else parse_percent(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from error


def compare_files(old: Sequence[str], new: Sequence[str], output: Output) -> int:
    """Print the comparison of the recordings of two sides, and return the exit code."""
    from epprof_nb.profiles import load

    try:
        sides = [[load(path) for path in side] for side in (old, new)]
    except (EpprofError, OSError) as error:
        click.echo(f"Error: {_why(error)}", err=True)
        return UNUSABLE_FILE
    return _compare(sides, output)


def _why(error: EpprofError | OSError) -> str:
    """Return why a file cannot be used, as a sentence without an error number."""
    if not isinstance(error, OSError) or error.filename is None:
        return str(error)
    name = error.filename
    match error:
        case FileNotFoundError():
            return f"File {name} does not exist."
        case IsADirectoryError():
            if any(Path(name).glob("rank-*/")):
                return (
                    f"{name} is a job of several processes. Save the profiles of ranks, as in "
                    f'`epprof_nb.load("{name}")[0].save("rank0.epprof")`, and compare these.'
                )
            return f"{name} is a folder. Name the files in it that `Profile.save` wrote (.epprof)."
    return f"File {name} cannot be read: {error.strerror}."


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
            detail = None if output.fail_above_memory is None else "memory"
            sides = record_rounds((old, new), rounds, folder, detail=detail)
        except (EpprofError, OSError, ScriptFailedError) as error:
            click.echo(f"Error: {error}", err=True)
            return UNUSABLE_FILE
    everything = [profile for side in sides for profile in side]
    if all(len(repeat_bounds(profile.info)[0]) < 2 for profile in everything):
        # Each run counts as a repeat, and the runs of a round follow each other.
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
    codes = [
        *([] if output.fail_above is None else [_time_code(result, output.fail_above)]),
        *([] if output.fail_above_memory is None else [_memory_code(result, output)]),
    ]
    return SLOWER if SLOWER in codes else max(codes)


def _memory_code(result: Comparison, output: Output) -> int:
    from epprof_nb.views.comparison import NO_MEMORY

    if result.memory_change is None:
        click.echo(f"--fail-above-memory: {NO_MEMORY}", err=True)
        return NO_VERDICT
    return SLOWER if result.memory_change > (output.fail_above_memory or 0) else NOT_SLOWER


def _time_code(result: Comparison, limit: float) -> int:
    if result.verdict == "cannot be compared":
        return NO_VERDICT
    if (result.change_low or 0) > limit:
        return SLOWER
    if result.verdict == "cannot tell":
        return NO_VERDICT
    missed = _missed_limit(result, limit)
    if missed is not None:
        click.echo(missed, err=True)
        return NO_VERDICT
    return NOT_SLOWER


def _missed_limit(result: Comparison, limit: float) -> str | None:
    """Return why it is unknown whether a change is above the limit; None if it is known.

    A limit of 0 requires no precision, because no comparison finds every change. One recording of
    each side finds changes of 3 to 9 % at best, which is enough for this limit.
    """
    detectable, high = result.detectable_change, result.change_high
    if not limit or detectable is None or high is None:
        return None
    if min(detectable, high) <= _NOTICED * limit:
        return None
    return (
        f"--fail-above {100 * limit:g}%: these recordings are not precise enough. They show only "
        f"changes of {100 * detectable:.1f} % or more, and the new code may be up to "
        f"{100 * high:.1f} % slower. Record more repeats, three or more recordings of each side, "
        "or both versions alternately (--run or --interleave) while no other program uses the "
        "machine, run `epprof calibrate`, or set a higher --fail-above."
    )


def parse_percent(text: str) -> float:
    """Return the fraction of a text such as ``3%``.

    Raises
    ------
    ValueError
        If the text is something else.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if match is None:
        raise ValueError(f"{text!r} is not a percentage. Write it as 3%.")
    return float(match[1]) / 100
