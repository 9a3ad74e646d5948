"""``epprof doctor``: the command line. `epprof_nb.commands.doctor_run` runs the checks."""

from __future__ import annotations

import sys

import click


@click.command()
def doctor() -> None:
    """Check the installation and show how to fix problems."""
    from epprof_nb.commands.doctor_run import run

    sys.exit(run())
