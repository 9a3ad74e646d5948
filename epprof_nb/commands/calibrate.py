"""``epprof calibrate``: the command line. `epprof_nb.commands.calibration` measures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from epprof_nb.commands.parameters import EXISTING_FILE

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.option("--run", "script", metavar="COMMAND", help="Record this, as 'python train.py'.")
@click.option(
    "--rounds",
    type=click.IntRange(5, 999),
    default=10,
    show_default=True,
    help="Recordings to make.",
)
@click.argument("files", nargs=-1, type=EXISTING_FILE)
def calibrate(*, script: str | None, rounds: int, files: tuple[Path, ...]) -> None:
    """Measure how much recordings of the same code vary on this machine, for comparisons.

    FILES are profiles of the same code, made with --repeat 20 or in steps. Without any, COMMAND
    is recorded several times, or a short piece of work on the host device. The result replaces
    the assumed value in comparisons of recordings made on this machine and its devices.
    """
    from epprof_nb.commands.calibration import run

    if files and script:
        raise click.UsageError("Pass recordings or --run, not both.")
    run(files, script, rounds)
