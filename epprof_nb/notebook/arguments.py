"""The options of ``%%gpuprofile`` and ``%gpuprofile``: their parser and what they ask for."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from epprof_nb.core.options import Options

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable

    from epprof_nb.notebook.settings import GpuProfile


@dataclass(frozen=True, slots=True)
class Request:
    """What one use of the magic asks for."""

    options: Options
    name: str | None = None
    warmup: int = 0
    repeat: int = 1
    lines: bool = True
    quiet: bool = False
    live: bool = False
    save: Path | None = None


def with_arguments(magic: Callable[..., Any]) -> Callable[..., Any]:
    """Give a magic function the parser and the help text of the options."""
    arguments = (
        argument("name", nargs="?", help="Variable that the profile is assigned to."),
        argument("-o", "--out", metavar="NAME", help="The same, for the line magic."),
        argument("-w", "--warmup", type=int, default=0, metavar="N",
                 help="Run the code N times before the profile begins."),
        argument("-r", "--repeat", type=int, default=1, metavar="N",
                 help="Run the code N times in the profile; each has its run_id."),
        argument("-d", "--detail", metavar="WHAT",
                 help="default, api (every CUDA call), memory (allocations), overhead "
                 "(the profiler's own) or all; several joined by commas."),
        argument("--time-limit", type=float, metavar="SECONDS",
                 help="Stop recording after so long; the code goes on."),
        argument("--max-records", type=int, metavar="N",
                 help="Keep at most N activities; those beyond are counted as lost."),
        argument("--no-lines", action="store_true",
                 help="Do not record the statements of the cell as ops."),
        argument("-l", "--live", action="store_true",
                 help="Show progress while the code runs: device busy, kernels a second, top ops."),
        argument("-q", "--quiet", action="store_true", help="Show nothing under the cell."),
        argument("-s", "--save", metavar="PATH", help="Write the profile to this .epprof file."),
    )  # fmt: skip
    for decorate in reversed(arguments):
        magic = decorate(magic)
    decorated: Callable[..., Any] = magic_arguments()(magic)
    return decorated


def parse(magic: Callable[..., Any], line: str, settings: GpuProfile) -> Request:
    """Parse the options of a use of the magic.

    Raises
    ------
    UsageError
        For options that do not exist or make no sense; it says which do.
    """
    try:
        given = parse_argstring(magic, line)
    except (UsageError, ValueError) as error:  # ValueError: an unclosed quotation mark
        raise UsageError(
            f"%%gpuprofile cannot read its options {line!r}: {error}. %%gpuprofile? lists them all."
        ) from None
    name = given.out or given.name
    if name is not None and (not name.isidentifier() or keyword.iskeyword(name)):
        raise UsageError(
            f"{name!r} cannot be the name of a variable. Give the name for the profile first, "
            "then options, as in: %%gpuprofile prof --repeat 3"
        )
    if given.warmup < 0 or given.repeat < 1:
        raise UsageError(
            f"--warmup must be 0 or more and --repeat 1 or more, "
            f"not {given.warmup} and {given.repeat}."
        )
    limit = settings.time_limit if given.time_limit is None else given.time_limit
    records = settings.max_records if given.max_records is None else given.max_records
    try:
        options = Options(
            detail=given.detail or settings.detail,
            max_records=records,
            time_limit_s=limit,
        )
    except ValueError as error:
        raise UsageError(
            f"{error}. Correct the option here or in %config GpuProfile; "
            "%%gpuprofile? lists them all."
        ) from None
    return Request(
        options=options,
        name=name,
        warmup=given.warmup,
        repeat=given.repeat,
        lines=settings.lines and not given.no_lines,
        quiet=given.quiet or settings.quiet,
        live=given.live or settings.live,
        save=Path(given.save.strip("\"'")).expanduser() if given.save else None,
    )


def parse_line(magic: Callable[..., Any], line: str, settings: GpuProfile) -> tuple[Request, str]:
    """Parse the line magic's ``[options] statement``; the statement is returned as it stands."""
    parser: ArgumentParser = magic.parser  # type: ignore[attr-defined]
    at = 0
    while found := re.compile(r"\s*(-[-\w]+)(=\S*)?(?=\s|$)").match(line, at):
        option = parser._option_string_actions.get(found[1])  # noqa: SLF001 - argparse has no door
        if option is None:
            break
        at = found.end()
        if option.nargs is None and found[2] is None:
            value = re.compile(r"\s*(\"[^\"]*\"|'[^']*'|\S+)").match(line, at)
            at = value.end() if value else at
    statement = line[at:].strip()
    request = parse(magic, line[:at], settings)
    if not statement:
        raise UsageError(
            "%gpuprofile has no statement to profile. Put one after the options, as in: "
            "%gpuprofile -o prof y = model(x)"
        )
    return replace(request, name=request.name), statement
