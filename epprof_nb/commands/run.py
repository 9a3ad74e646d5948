"""Command line of ``epprof run``. `epprof_nb.commands.run_script` runs the script."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from epprof_nb.commands.parameters import NEW_FILE, refuse_same_file
from epprof_nb.core.options import ORT_NODES

if TYPE_CHECKING:
    from epprof_nb.commands.script_recording import RunRequest
    from epprof_nb.core.options import Options
    from epprof_nb.jobs.child_session import ChildSession


class _RunCommand(click.Command):
    """A command whose options end at the script, or at the module after ``-m``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options; the script or module gets the arguments after it."""
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


@click.command(cls=_RunCommand, context_settings={"allow_interspersed_args": False})
@click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="Path of the profile; default: SCRIPT.epprof, or no profile if --html is given. With "
    "--children, and in the ranks of torchrun and other launchers, the folder of a job, to which "
    "each process writes its part; default: SCRIPT.job. An existing profile or job is replaced.",
)
@click.option(
    "--children", is_flag=True, help="Record the Python processes that the script starts, too."
)
@click.option("--html", type=NEW_FILE, help="Path of an HTML report.")
@click.option(
    "--steps",
    metavar="A:B",
    help="Record only steps A to B-1; the script begins a step with epprof_nb.step(). Step 0 is "
    "the code before the first call.",
)
@click.option(
    "--experiment",
    type=int,
    metavar="N",
    help="Delay the named ops in up to N repeats of the recorded steps: prof.sensitivity() shows "
    "which of them the wall time follows. Needs epprof_nb.step(), and steps for N + 11 repeats "
    "after the recorded ones; --steps sets these (default 2:3, or more if the device works on "
    "after a step).",
)
@click.option(
    "-d",
    "--detail",
    default="default",
    help="Record more: api, memory, overhead, all; operators (of PyTorch) or shapes (operators "
    "and the shapes of their inputs), which all does not include.",
)
@click.option(
    "--max-records",
    type=int,
    default=5_000_000,
    help="Maximum number of records (activities, allocations, calls and so on). Further ones are "
    "dropped and counted.",
)
@click.option("--time-limit", type=float, help="Stop recording after this many seconds.")
@click.option(
    "--ort-nodes",
    type=click.Choice(ORT_NODES),
    help="Runs of ONNX Runtime sessions to record node by node: every, auto (some; launches "
    "identify the nodes of the others) or off; default: as the script passes to "
    "epprof_nb.onnxruntime.install.",
)
@click.option(
    "--own",
    multiple=True,
    metavar="WHERE",
    help="A folder, file or package to treat as your code when the line of a launch is looked "
    "up; may be repeated.",
)
@click.option(
    "--library",
    multiple=True,
    metavar="WHERE",
    help="A folder, file or package to treat as library code there; may be repeated.",
)
@click.option("--no-lines", is_flag=True, help="Do not record the script's statements as ops.")
@click.option(
    "--no-stacks", is_flag=True, help="Do not record the Python stacks of launches and waits."
)
@click.option(
    "--no-samples",
    is_flag=True,
    help="Do not sample the Python code that the host runs between launches.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print only the script's output and errors.")
@click.argument("script", required=False)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def run(
    ctx: click.Context,
    *,
    module: str | None,
    out: Path | None,
    children: bool,
    html: Path | None,
    steps: str | None,
    experiment: int | None,
    detail: str,
    max_records: int,
    time_limit: float | None,
    ort_nodes: str | None,
    own: tuple[str, ...],
    library: tuple[str, ...],
    no_lines: bool,
    no_stacks: bool,
    no_samples: bool,
    quiet: bool,
    script: str | None,
    args: tuple[str, ...],
) -> None:
    """Profile a script: epprof run [OPTIONS] SCRIPT [ARGS]...

    The script runs as under python, with its arguments, exit code and signals. The profile is
    saved however the script ends. If the script succeeds, but a file of the profile cannot be
    written, the exit code is 73.
    """
    from epprof_nb.commands.main_module import ScriptNotFoundError, find_module, find_script
    from epprof_nb.commands.run_script import run as run_script
    from epprof_nb.commands.script_recording import RunRequest
    from epprof_nb.core.options import Options as SessionOptions
    from epprof_nb.jobs.launcher_environment import is_one_of_several

    arguments = [*args] if module is None else [*([] if script is None else [script]), *args]
    if module is None and script is None:
        raise click.UsageError("Name a script to run, or a module after -m.")
    try:
        request = RunRequest(
            SessionOptions(
                detail, max_records, time_limit, ort_nodes, own=own, library=library,
                stacks=not no_stacks, samples=not no_samples,
            ), out, html,
            _steps(steps or "2:3") if steps or experiment is not None else None,
            not no_lines, quiet, experiment=experiment or 0,
        )  # fmt: skip
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    try:
        target = find_module(module) if module is not None else find_script(str(script))
    except ScriptNotFoundError as error:
        raise click.UsageError(str(error)) from error
    is_job = children or is_one_of_several() or (out is not None and out.is_dir())
    if experiment is not None:
        _check_experiment(experiment, request, is_job=is_job)
    if out is None and (html is None or is_job):
        name = Path(target.argument).stem if module is None else module.rpartition(".")[2]
        request = replace(request, out=Path(f"{name}.job" if is_job else f"{name}.epprof"))
    for path in (request.out, request.html):
        if path is not None and not path.resolve().parent.is_dir():
            raise click.UsageError(f"{path} cannot be written: its folder does not exist.")
    refuse_same_file("--out", request.out, {"the script": Path(target.path)})
    refuse_same_file(
        "--html", request.html, {"the script": Path(target.path), "the profile": request.out}
    )
    # The script may change the working directory.
    request = replace(
        request, out=request.out and request.out.resolve(),
        html=request.html and request.html.resolve(),
    )  # fmt: skip
    if is_job and request.out is not None:
        request = replace(
            request, out=None, member=_join(request.out, request.options), children=children
        )
    known = {name for param in ctx.command.params for name in param.opts}
    given = [part for part in arguments if part.partition("=")[0] in known and part[:2] == "--"]
    if given and not quiet:
        click.echo(
            f"epprof: {', '.join(given)} was passed to {target.argument}; options of epprof run "
            "come before the script.",
            err=True,
        )
    sys.exit(run_script(target, arguments, request))


def _join(folder: Path, options: Options) -> ChildSession:
    """Begin the job in a folder, or join it."""
    from epprof_nb.jobs.begin_job import FolderInUseError, begin_job
    from epprof_nb.jobs.child_session import ChildSession

    try:
        order, part = begin_job(folder, options)
    except (FolderInUseError, OSError) as error:
        raise click.BadParameter(str(error), param_hint="--out") from error
    return ChildSession(order, "run", part=part)


def _check_experiment(repeats: int, request: RunRequest, *, is_job: bool) -> None:
    from epprof_nb.core.least_repeats import MAX_OF_EXPERIMENT, MIN_OF_EXPERIMENT

    if not MIN_OF_EXPERIMENT <= repeats <= MAX_OF_EXPERIMENT:
        raise click.BadParameter(
            f"the number of repeats must be from {MIN_OF_EXPERIMENT} to {MAX_OF_EXPERIMENT:,}.",
            param_hint="--experiment",
        )
    if request.options.time_limit_s is not None:
        raise click.UsageError(
            "--experiment replays whole steps, and --time-limit may record a part of one. Leave "
            "out one of them."
        )
    if is_job:
        raise click.UsageError("--experiment delays one process; it cannot be used for a job.")
    if request.steps is not None and request.steps[1] == sys.maxsize:
        raise click.UsageError(
            "--experiment follows the recorded steps, so --steps needs an end, such as 10:12."
        )


def _steps(text: str) -> tuple[int, int]:
    """Parse ``A:B``; both numbers are optional."""
    match = re.fullmatch(r"(\d*):(\d*)", text)
    if not match:
        raise click.BadParameter(
            f"{text!r} is not of the form A:B, such as 10:20.", param_hint="--steps"
        )
    first, end = int(match[1] or 0), int(match[2] or sys.maxsize)
    if end <= first:
        raise click.BadParameter(f"{text} contains no step.", param_hint="--steps")
    return first, end
