"""Command line of ``epprof calibrate``. `epprof_nb.commands.calibrate_spread` measures."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import click

from epprof_nb.commands.parameters import EXISTING_FILE

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.option("--run", "script", metavar="COMMAND", help="Command to record.")
@click.option(
    "--rounds",
    type=click.IntRange(5, 999),
    default=10,
    show_default=True,
    help="Recordings to make.",
)
@click.option(
    "--if-quiet", is_flag=True, help="Keep nothing if other processes keep the machine busy."
)
@click.option("--until-eof", is_flag=True, hidden=True)
@click.argument("files", nargs=-1, type=EXISTING_FILE)
def calibrate(
    *,
    script: str | None,
    rounds: int,
    if_quiet: bool,
    until_eof: bool,
    files: tuple[Path, ...],
) -> None:
    """Measure how much recordings of the same code vary on this machine, for comparisons.

    FILES are profiles of the same code, made with --repeat 20 or in steps. Without FILES, COMMAND
    (such as 'python train.py') is recorded several times; by default it is a short workload on
    the host device. Comparisons of recordings made on this machine and its devices then use the
    result instead of the assumed value.
    """
    if until_eof:
        end_with_input()
    from epprof_nb.commands.calibrate_spread import measure_and_keep

    if files and script:
        raise click.UsageError("Pass recordings or --run, not both.")
    measure_and_keep(files, script, rounds, if_quiet=if_quiet)


def end_with_input() -> None:
    """End this process and its children when standard input has ended."""
    from epprof_nb.core.own_thread import OwnThread

    OwnThread(target=_interrupt_at_end, daemon=True).start()


def _interrupt_at_end() -> None:
    """Interrupt this process and the scripts that it records once standard input has ended.

    The process at the other end of the pipe has then ended, whatever the signal was.
    """
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGINT)
