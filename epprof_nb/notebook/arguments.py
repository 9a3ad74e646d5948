"""Options of ``%%gpuprofile`` and ``%gpuprofile`` and their parser."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from epprof_nb.core.least_repeats import MAX_OF_EXPERIMENT, MIN_COMPARED, MIN_OF_EXPERIMENT
from epprof_nb.core.options import Options
from epprof_nb.util.format import elide

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable

    from epprof_nb.notebook.settings import GpuProfile


@dataclass(frozen=True, slots=True)
class Request:
    """Parsed options of one use of the magic."""

    options: Options
    name: str | None = None
    warmup: int = 0
    repeat: int = 1
    lines: bool = True
    quiet: bool = False
    live: bool = False
    children: bool = False
    cluster: str | None = None
    save: Path | None = None
    baseline: str | None = None
    interleave: bool = False
    experiment: int = 0
    calibrate: bool = True


def with_arguments(magic: Callable[..., Any]) -> Callable[..., Any]:
    """Add the parser and the help text of the options to a magic function."""
    arguments = (
        argument("name", nargs="?", help="Variable to assign the profile to."),
        argument("-o", "--out", metavar="NAME",
                 help="Variable to assign the profile to (for the line magic)."),
        argument("-w", "--warmup", type=int, default=0, metavar="N",
                 help="Run the code N times before profiling."),
        argument("-r", "--repeat", type=int, default=1, metavar="N",
                 help="Run the code N times while profiling. The column repeat numbers them."),
        argument("-d", "--detail", metavar="WHAT",
                 help="Record more: api (all CUDA calls), memory (allocations), overhead "
                 "(CUPTI's own overhead) or all; operators (of PyTorch) or shapes (operators "
                 "and the shapes of their inputs), which all does not include. Separate several "
                 "values with commas."),
        argument("--time-limit", type=float, metavar="SECONDS",
                 help="Stop recording after this time. The code continues to run."),
        argument("--max-records", type=int, metavar="N",
                 help="Maximum number of records (activities, allocations, calls and so on). "
                 "Further ones are dropped and counted."),
        argument("--ort-nodes", metavar="MODE",
                 help="Runs of ONNX Runtime sessions to record node by node: every, auto (some; "
                 "launches identify the nodes of the others) or off."),
        argument("--own", metavar="WHERE",
                 help="Folders, files or packages to treat as your code when the line "
                 "of a launch is looked up. Separate several with commas."),
        argument("--library", metavar="WHERE",
                 help="Folders, files or packages to treat as library code there."),
        argument("--no-lines", action="store_true",
                 help="Do not record the statements of the cell as ops."),
        argument("--no-stacks", action="store_true",
                 help="Do not record the Python stacks of launches and waits."),
        argument("--no-samples", action="store_true",
                 help="Do not sample the Python code that the host runs between launches."),
        argument("-l", "--live", action="store_true",
                 help="Show progress while the code runs: GPU utilisation, kernels per second and "
                 "the top ops."),
        argument("--children", action="store_true",
                 help="Record the child processes, too, and assign a Job: those that the code "
                 "starts, and those that run and listen (%%config GpuProfile.children = True "
                 "before they start)."),
        argument("--cluster", metavar="CLIENT",
                 help="Record the workers of a Dask cluster, too, and assign a Job: the variable "
                 "of its client."),
        argument("-q", "--quiet", action="store_true", help="Do not display the profile."),
        argument("-b", "--baseline", metavar="OLD",
                 help="Compare with an earlier profile: a variable with a profile or a list of "
                 "profiles, or the path of an .epprof file. Use --repeat 20 for both."),
        argument("--interleave", action="store_true",
                 help="Run the code of the baseline again, alternating with this code, so that "
                 "both are measured under the same conditions. Its side effects happen again. "
                 "Needs --baseline and --repeat."),
        argument("--experiment", type=int, metavar="N",
                 help="Then run the code up to N times, not recorded, with short delays at the "
                 "ends of its named ops. prof.sensitivity() shows which of them the wall time "
                 "follows, and how much time a faster op would save."),
        argument("-s", "--save", metavar="PATH", help="Save the profile to this file (.epprof)."),
    )  # fmt: skip
    for decorate in reversed(arguments):
        magic = decorate(magic)
    decorated: Callable[..., Any] = magic_arguments()(magic)
    # IPython shows the text as it is; it begins as reStructuredText, with the line magic's usage.
    text = (decorated.__doc__ or "").removeprefix("::\n\n").lstrip()
    decorated.__doc__ = f"usage: %{text}"
    return decorated


def parse(magic: Callable[..., Any], line: str, settings: GpuProfile) -> Request:
    """Parse the options of the magic.

    Raises
    ------
    UsageError
        If an option is unknown or its value is invalid.
    """
    try:
        args = parse_argstring(magic, _without_comment(line))
    except (UsageError, ValueError) as error:  # ValueError: an unclosed quotation mark
        raise UsageError(
            f"Cannot parse the options of %%gpuprofile {line!r}: {error}. Run %%gpuprofile? for "
            "the list of options."
        ) from None
    name = args.out or args.name
    if name is not None and (not name.isidentifier() or keyword.iskeyword(name)):
        raise UsageError(
            f"{name!r} is not a valid variable name. Put the name of the profile first, then the "
            "options, as in: %%gpuprofile prof --repeat 3"
        )
    if name is not None and _is_taken(name):
        raise UsageError(
            f"{name} is a name of Python or IPython. Choose another name for the profile, as in: "
            "%%gpuprofile prof"
        )
    if args.warmup < 0 or args.repeat < 1:
        raise UsageError(
            "--warmup must be at least 0 and --repeat at least 1, "
            f"not {args.warmup} and {args.repeat}."
        )
    if args.interleave and (args.baseline is None or args.repeat < MIN_COMPARED):
        raise UsageError(
            "--interleave needs a baseline, whose code alternates with the code of the cell, and "
            f"at least {MIN_COMPARED} repeats, as in: %%gpuprofile {name or 'new'} --repeat 20 "
            f"--baseline {args.baseline or 'old'} --interleave"
        )
    if args.experiment is not None:
        _check_experiment(args)
    if args.children and args.cluster:
        raise UsageError(
            "--children and --cluster cannot be combined. The cell did not run. Leave out one of "
            "them."
        )
    if (args.children or args.cluster) and args.save:
        option = "--children" if args.children else "--cluster"
        raise UsageError(
            f"--save writes the profile of one process, and {option} records several. The cell "
            "did not run. Save the job after the cell, to a folder, as in: "
            f"{name or 'job'}.save('run')"
        )
    save = Path(args.save.strip("\"'")).expanduser() if args.save else None
    if save is not None and save.suffix != ".epprof":
        raise UsageError(
            f"--save writes .epprof files, and {save.name!r} has another ending. The cell did not "
            f"run. Write --save {save.with_suffix('.epprof')}. Other formats are methods of the "
            "profile: prof.to_html('run.html'), to_perfetto('run.pftrace'), "
            "to_chrome('run.json.gz'), to_speedscope('run.speedscope.json')."
        )
    limit = settings.time_limit if args.time_limit is None else args.time_limit
    if args.experiment:  # a whole repeat is replayed
        limit = None
    records = settings.max_records if args.max_records is None else args.max_records
    try:
        options = Options(
            detail=args.detail or settings.detail,
            max_records=records,
            time_limit_s=limit,
            ort_nodes=args.ort_nodes or settings.ort_nodes,
            frameworks=tuple(settings.frameworks),
            stacks=settings.stacks and not args.no_stacks,
            samples=settings.samples and not args.no_samples,
            own=(*settings.own, *_listed(args.own)),
            library=(*settings.library, *_listed(args.library)),
        )
    except ValueError as error:
        raise UsageError(
            f"{error}. Correct the option here or in %config GpuProfile. Run %%gpuprofile? for "
            "the list of options."
        ) from None
    return Request(
        options=options,
        name=name,
        # The first run imports, compiles and allocates.
        warmup=max(args.warmup, 1) if args.experiment else args.warmup,
        repeat=args.repeat,
        lines=settings.lines and not args.no_lines,
        quiet=args.quiet or settings.quiet,
        live=args.live or settings.live,
        children=args.children,
        cluster=args.cluster,
        calibrate=settings.calibrate,
        save=save,
        baseline=args.baseline.strip("\"'") if args.baseline else None,
        interleave=args.interleave,
        experiment=args.experiment or 0,
    )


def _check_experiment(args: Namespace) -> None:
    if not MIN_OF_EXPERIMENT <= args.experiment <= MAX_OF_EXPERIMENT:
        raise UsageError(
            f"--experiment takes from {MIN_OF_EXPERIMENT} to {MAX_OF_EXPERIMENT:,} repeats, not "
            f"{elide(str(args.experiment), 20, tail=4)}. The cell did not run. Write "
            "--experiment 40."
        )
    if args.time_limit is not None:
        raise UsageError(
            "--experiment replays a whole repeat, and --time-limit may record a part of it. The "
            "cell did not run. Leave out one of them."
        )
    others = [name for name in ("interleave", "children", "cluster") if getattr(args, name)]
    if others:
        raise UsageError(
            f"--experiment and --{others[0]} cannot be combined. The cell did not run. Leave out "
            "one of them."
        )


def _listed(text: str | None) -> list[str]:
    """Return the parts of a text that commas separate.

    Examples
    --------
    >>> _listed("'models, utils/nn.py'"), _listed(None)
    (['models', 'utils/nn.py'], [])
    """
    parts = (text or "").strip("\"'").split(",")
    return [part.strip() for part in parts if part.strip()]


def _without_comment(line: str) -> str:
    """Return the options without the comment after them; a # in quotation marks is not a comment.

    Examples
    --------
    >>> _without_comment("prof -s 'run #1.epprof'  # keep it")
    "prof -s 'run #1.epprof'"
    """
    match = re.match(r"""(?:"[^"]*"|'[^']*'|(?<=\S)#|[^#])*""", line)
    return (match[0] if match else line).rstrip()


def _is_taken(name: str) -> bool:
    """Whether a variable of this name would hide a builtin or a variable of IPython."""
    return (
        hasattr(builtins, name)
        or name in ("In", "Out", "get_ipython", "exit", "quit")
        or re.fullmatch(r"_+|_i+|_i?\d+|_[iod]h|_exit_code|__\w*__", name) is not None
    )


def parse_line(
    magic: Callable[..., Any],
    line: str,
    settings: GpuProfile,
    *,
    transform: Callable[[str], str] = str,
) -> tuple[Request, str]:
    """Parse ``[options] statement`` of the line magic; the statement is returned unchanged.

    Parameters
    ----------
    magic, line, settings
        The function of the magic, its line and the default options.
    transform
        Turns IPython's syntax into Python.

    Raises
    ------
    UsageError
        If an option is unknown, its value is invalid, or the statement is missing or begins with
        the name of a profile.
    """
    parser: ArgumentParser = magic.parser  # type: ignore[attr-defined]
    at = 0
    while match := re.compile(r"\s*(-[-\w]+)(=\S*)?(?=\s|$)").match(line, at):
        option = parser._option_string_actions.get(match[1])  # noqa: SLF001 - no public API
        if option is None:
            break
        at = match.end()
        if option.nargs is None and match[2] is None:
            value = re.compile(r"\s*(\"[^\"]*\"|'[^']*'|\S+)").match(line, at)
            at = value.end() if value else at
    statement = line[at:].strip()
    request = parse(magic, line[:at], settings)
    if not statement:
        raise UsageError(
            "%gpuprofile has no statement to profile. Put one after the options, as in: "
            "%gpuprofile -o prof y = model(x)"
        )
    if _is_line_of_cell_magic(magic, statement, transform):
        shown = elide(statement, 60, tail=0)
        raise UsageError(
            f"%gpuprofile profiles one statement, and {shown!r} is the name of a profile. To "
            f"profile a cell, begin it with two %: %%gpuprofile {shown}. To profile a statement, "
            f"write: %gpuprofile -o {statement.split()[0]} y = model(x)"
        )
    name = _name_before(statement, transform)
    if name is not None:
        rest = statement[len(name) :].strip()
        raise UsageError(
            f"%gpuprofile takes a statement, and {elide(statement, 60, tail=0)!r} is not one. To "
            f"assign the profile to {name}, write: %gpuprofile -o {name} {elide(rest, 60, tail=0)}"
        )
    return request, statement


def _is_line_of_cell_magic(
    magic: Callable[..., Any], statement: str, transform: Callable[[str], str]
) -> bool:
    """Whether a statement is only a name, with or without options, as after ``%%gpuprofile``."""
    name, _, options = statement.partition(" ")
    if not name.isidentifier() or keyword.iskeyword(name):
        return False
    if not options:
        return True
    if not options.lstrip().startswith("-"):
        return False
    if "--" not in options and _parses(statement, transform):
        return False  # a subtraction
    try:
        parse_argstring(magic, statement)
    except (UsageError, ValueError):
        return False
    return True


def _name_before(statement: str, transform: Callable[[str], str]) -> str | None:
    """Return the name before a statement, as in the cell magic; None if there is none."""
    match = re.fullmatch(r"([^\W\d]\w*)\s+(\S.*)", statement, re.DOTALL)
    if match is None or keyword.iskeyword(match[1]) or hasattr(builtins, match[1]):
        return None
    if _parses(statement, transform):
        return None
    return match[1] if match[2].startswith("-") or _parses(match[2], transform) else None


def _parses(code: str, transform: Callable[[str], str]) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(transform(code))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True
