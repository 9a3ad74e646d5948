"""The command line: ``epprof``, with a command for each thing to do outside a notebook."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import click

from epprof_nb.core.errors import EpprofError
from epprof_nb.core.version import package_version


@click.group()
@click.version_option(package_version(), prog_name="epprof")
def main() -> None:
    """Commands for epprof_nb, the GPU profiler for notebooks."""


class _RunCommand(click.Command):
    """A command whose options end at the script, or at the module after ``-m``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options; what follows the script or module is left to it."""
        valued = {
            name
            for param in self.params
            if isinstance(param, click.Option) and not param.is_flag
            for name in param.opts
        }
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] not in ("-", "--"):
            if args[at] == "-m":
                args = [*args[: at + 2], "--", *args[at + 2 :]]
                break
            at += 2 if args[at] in valued else 1
        return super().parse_args(ctx, args)


_FILE = click.Path(dir_okay=False, path_type=Path)


@main.command(cls=_RunCommand, context_settings={"allow_interspersed_args": False})
@click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does.")
@click.option("-o", "--out", type=_FILE, help="Path of the profile; default: SCRIPT.epprof.")
@click.option("--html", type=_FILE, help="Path of an HTML report.")
@click.option(
    "--steps",
    metavar="A:B",
    help="Record only steps A to B-1; the script begins a step with epprof_nb.step(). Step 0 is "
    "what comes before the first call.",
)
@click.option(
    "-d",
    "--detail",
    default="default",
    help="Record more: api, memory, overhead, all; operators (of PyTorch; not part of all).",
)
@click.option("--max-records", type=int, default=5_000_000, help="Maximum number of activities.")
@click.option("--time-limit", type=float, help="Stop recording after this many seconds.")
@click.option("--no-lines", is_flag=True, help="Do not record the script's statements as ops.")
@click.option("-q", "--quiet", is_flag=True, help="Print only the script's output and errors.")
@click.argument("script", required=False)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(
    *,
    module: str | None,
    out: Path | None,
    html: Path | None,
    steps: str | None,
    detail: str,
    max_records: int,
    time_limit: float | None,
    no_lines: bool,
    quiet: bool,
    script: str | None,
    args: tuple[str, ...],
) -> None:
    """Profile a script: epprof run [OPTIONS] SCRIPT [ARGS]...

    The script runs as under python, with its arguments, exit code and signals. The profile is
    saved however the script ends.
    """
    from epprof_nb.commands.main_module import ScriptNotFoundError, find_module, find_script
    from epprof_nb.commands.run import RunRequest
    from epprof_nb.commands.run import run as run_script
    from epprof_nb.core.options import Options

    arguments = [*args] if module is None else [*([] if script is None else [script]), *args]
    if module is None and script is None:
        raise click.UsageError("Name a script to run, or a module after -m.")
    try:
        request = RunRequest(
            Options(detail, max_records, time_limit), out, html,
            None if steps is None else _steps(steps), not no_lines, quiet,
        )  # fmt: skip
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    try:
        target = find_module(module) if module is not None else find_script(str(script))
    except ScriptNotFoundError as error:
        raise click.UsageError(str(error)) from error
    if out is None and html is None:
        name = Path(target.argument).stem if module is None else module.rpartition(".")[2]
        request = replace(request, out=Path(f"{name}.epprof"))
    for path in (request.out, request.html):
        if path is not None and not path.resolve().parent.is_dir():
            raise click.UsageError(f"{path} cannot be written: its folder does not exist.")
    _refuse_same_file("--out", request.out, {"the script": Path(target.path)})
    _refuse_same_file(
        "--html", request.html, {"the script": Path(target.path), "the profile": request.out}
    )
    # The script may change the working directory.
    request = replace(
        request, out=request.out and request.out.resolve(),
        html=request.html and request.html.resolve(),
    )  # fmt: skip
    own = {name for param in main.commands["run"].params for name in param.opts}
    given = [part for part in arguments if part.partition("=")[0] in own and part[:2] == "--"]
    if given and not quiet:
        click.echo(
            f"epprof: {', '.join(given)} was passed to {target.argument}; options of epprof run "
            "come before the script.",
            err=True,
        )
    sys.exit(run_script(target, arguments, request))


def _steps(text: str) -> tuple[int, int]:
    """Parse ``A:B``, where either may be left out."""
    match = re.fullmatch(r"(\d*):(\d*)", text)
    if not match:
        raise click.BadParameter(
            f"{text!r} is not of the form A:B, as 10:20.", param_hint="--steps"
        )
    first, end = int(match[1] or 0), int(match[2] or sys.maxsize)
    if end <= first:
        raise click.BadParameter(f"{text} contains no step.", param_hint="--steps")
    return first, end


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def info(file: Path) -> None:
    """Print what is in a saved profile: devices, versions, duration, counts and notes."""
    from epprof_nb.commands.info import describe
    from epprof_nb.profiles import load
    from epprof_nb.util.format import size

    try:
        profile = load(file)
    except (EpprofError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{file} ({size(file.stat().st_size)})")
    click.echo(describe(profile))


@main.command()
@click.option(
    "--fail-above",
    default="0%",
    show_default=True,
    metavar="PERCENT",
    help="Exit with 1 only if the new code is slower by more than this, with 95 % confidence.",
)
@click.option("--html", type=_FILE, help="Path of an HTML page with both timelines.")
@click.option("--markdown", is_flag=True, help="Print Markdown.")
@click.option(
    "--allow",
    multiple=True,
    metavar="DIFFERENCE",
    help="Compare in spite of other devices, clocks, counts (executions of an op), shapes, or "
    "dropped records.",
)
@click.option("--more-old", multiple=True, type=_FILE, help="A further recording like OLD.")
@click.option("--more-new", multiple=True, type=_FILE, help="A further recording like NEW.")
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
    fail_above: str,
    html: Path | None,
    markdown: bool,
    allow: tuple[str, ...],
) -> None:
    """Compare two saved profiles of code that ran with --repeat or in steps.

    With --run, two scripts are run and compared. A script may begin each step with
    epprof_nb.step(); of others, whole runs are compared, which takes 10 rounds or more.

    Exit codes: 0 the new code is not slower, 1 it is slower, 3 they cannot be compared, 4 a file
    cannot be used or a script failed.
    """
    from epprof_nb.analysis.compare.refusals import ALLOWED
    from epprof_nb.commands import compare as command
    from epprof_nb.commands.recorded_scripts import Script

    for name in allow:
        if name not in ALLOWED:
            raise click.BadParameter(
                f"{name} is not one of {', '.join(ALLOWED)}", param_hint="--allow"
            )
    try:
        limit = command.parse_percent(fail_above)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--fail-above") from error
    if html is not None:
        _refuse_unwritable(html, "--html")
        files = {} if run_scripts else {"OLD": Path(old), "NEW": Path(new)}
        _refuse_same_file("--html", html, {**files})
    output = command.Output(limit, markdown, allow, html)  # type: ignore[arg-type] # checked above
    if not run_scripts:
        if keep is not None:
            raise click.UsageError("--keep needs --run.")
        sides = ([old, *map(str, more_old)], [new, *map(str, more_new)])
        sys.exit(command.compare_files(*sides, output))
    if more_old or more_new:
        raise click.UsageError("--more-old and --more-new name files; --run records --rounds.")
    try:
        scripts = Script.parse(old), Script.parse(new)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    sys.exit(command.compare_scripts(*scripts, rounds, keep, output))


@main.command()
@click.option("--run", "script", metavar="COMMAND", help="Record this, as 'python train.py'.")
@click.option(
    "--rounds",
    type=click.IntRange(5, 999),
    default=10,
    show_default=True,
    help="Recordings to make.",
)
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def calibrate(*, script: str | None, rounds: int, files: tuple[Path, ...]) -> None:
    """Measure how much recordings of the same code vary on this machine, for comparisons.

    FILES are profiles of the same code, made with --repeat 20 or in steps. Without any, COMMAND
    is recorded several times, or a short piece of work on the host device. The result replaces
    the assumed value in comparisons of recordings made on this machine and its devices.
    """
    from epprof_nb.commands.calibrate import run

    if files and script:
        raise click.UsageError("Pass recordings or --run, not both.")
    run(files, script, rounds)


@main.command()
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("epprof-demo.html"),
    show_default=True,
    help="Path of the HTML report.",
)
def demo(report: Path) -> None:
    """Profile a small training loop, print its ops and write an HTML report."""
    from epprof_nb.commands.demo import run
    from epprof_nb.views.renderers.text import as_text
    from epprof_nb.views.view_model import ViewModel

    _refuse_unwritable(report, "--report")
    prof, where = run()
    click.echo(as_text(ViewModel(prof)))
    click.echo()
    click.echo(where)
    prof.to_html(report)
    click.echo(f"Report with the timeline: {report.resolve()} (open it in a browser)")
    click.echo("In a notebook: jupyter lab notebooks/01_quickstart.ipynb")


@main.command()
def doctor() -> None:
    """Check the installation and show how to fix problems."""
    from epprof_nb.commands.doctor import run

    sys.exit(run())


@main.group()
def ep() -> None:
    """Commands for kernels in Python, ONNX Runtime's execution provider."""


@ep.command()
@click.option(
    "--provider", "providers", multiple=True, metavar="NAME",
    help="Compare with this provider only; may be repeated.",
)  # fmt: skip
@click.option(
    "--all", "every", is_flag=True, help="List all operators, also those without difference."
)
@click.option("--csv", is_flag=True, help="Print the whole table as CSV.")
def parity(*, providers: tuple[str, ...], every: bool, csv: bool) -> None:
    """Compare the operators, opset versions and types of execution providers.

    The kernels of each provider come from the installed ONNX Runtime.
    """
    from epprof_nb.commands.parity import describe
    from epprof_nb.ep import parity as compare_providers

    try:
        table = compare_providers(providers or None)
    except EpprofError as error:
        raise click.ClickException(str(error)) from error
    if csv:
        click.echo(table.to_csv(index=False), nl=False)
    else:
        click.echo("\n".join(describe(table, every=every)))


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Path of the HTML page; default: FILE with the suffix .html.",
)
@click.option(
    "--redact",
    metavar="PARTS",
    default="",
    help="Remove source, paths, hosts or shapes (separated by commas), or all of them.",
)
def report(file: Path, output: Path | None, redact: str) -> None:
    """Write a saved profile (.epprof) as one self-contained HTML page."""
    from epprof_nb.profiles import load

    target = output or file.with_suffix(".html")
    _refuse_same_file("--output", target, {"the profile to read": file})
    _refuse_unwritable(target, "--output")
    parts = _redacted_parts(redact)
    try:
        load(file).to_html(target, redact=parts)
    except (EpprofError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"Wrote {target}")


@main.command()
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option(
    "--redact",
    metavar="PARTS",
    default="",
    help="Leave out source, paths, hosts or shapes (separated by commas), or all of them.",
)
def mcp(*, files: tuple[Path, ...], redact: str) -> None:
    """Offer profiles to an assistant, by the Model Context Protocol over stdin and stdout.

    FILES are saved profiles (.epprof) or traces of other tools. The tools are profiles, summary,
    sql, compare and timeline_png. Needs: pip install epprof-nb[mcp]
    """
    parts = _redacted_parts(redact)
    try:
        from epprof_nb.commands.mcp import run

        run(files, parts)
    except (EpprofError, OSError, ImportError) as error:
        raise click.ClickException(str(error)) from error


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--max-chars", type=click.IntRange(min=500), default=8_000, show_default=True)
@click.option(
    "--redact",
    metavar="PARTS",
    default="",
    help="Leave out source, paths, hosts or shapes (separated by commas), or all of them.",
)
def summary(file: Path, *, as_json: bool, max_chars: int, redact: str) -> None:
    """Print totals, findings and rankings, each number with the SQL query that reproduces it.

    FILE is a saved profile (.epprof), or a trace of another tool.
    """
    from epprof_nb.commands.convert import open_any

    parts = _redacted_parts(redact)
    try:
        profile = open_any(file)
    except (EpprofError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(profile.summary(max_chars, "json" if as_json else "text", redact=parts))


@main.command()
@click.argument(
    "source", metavar="IN", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.argument("target", metavar="OUT", type=_FILE)
def convert(source: Path, target: Path) -> None:
    """Convert a saved profile or a trace of another tool.

    IN is an .epprof file, a trace of PyTorch (Kineto), a JSON profile of ONNX Runtime or a Chrome
    trace. The suffix of OUT selects the format: .epprof, .html (a page), .json or .json.gz (a
    Chrome trace).
    """
    from epprof_nb.commands.convert import open_any, writer_for

    write = writer_for(target)
    if write is None:
        raise click.BadParameter("its suffix must be .epprof, .html, .json or .json.gz",
                                 param_hint="OUT")  # fmt: skip
    _refuse_same_file("OUT", target, {"IN": source})
    _refuse_unwritable(target, "OUT")
    try:
        profile = open_any(source)
        write(profile, target)
    except (EpprofError, OSError) as error:
        raise click.ClickException(str(error)) from error
    for note in profile.info.get("notes") or ():
        click.echo(f"note: {note}")
    click.echo(f"Wrote {target}")


def _redacted_parts(redact: str) -> tuple[str, ...]:
    from epprof_nb.redaction.profile import PARTS, parts_of

    names = [part.strip() for part in redact.split(",") if part.strip()]
    if unknown := [name for name in names if name not in (*PARTS, "all")]:
        raise click.BadParameter(
            f"cannot remove {', '.join(map(repr, unknown))}: choose from {', '.join(PARTS)}, or "
            "all.",
            param_hint="--redact",
        )
    return parts_of(True if "all" in names else names)


def _refuse_same_file(option: str, path: Path | None, others: dict[str, Path | None]) -> None:
    """Refuse to write over another file of the command; symbolic and hard links are followed."""
    for what, other in others.items():
        if path is None or other is None:
            continue
        if path.resolve() == other.resolve() or (
            path.is_file() and other.is_file() and path.samefile(other)
        ):
            raise click.BadParameter(
                f"{path} is the file of {what}. Choose another path.", param_hint=option
            )


def _refuse_unwritable(path: Path, option: str) -> None:
    from epprof_nb.formats.atomic_file import check_writable

    try:
        check_writable(path)
    except (OSError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint=option) from error


if __name__ == "__main__":
    main()
