"""Command line of ``epprof doctor``. `epprof_nb.commands.doctor_report` runs the checks."""

from __future__ import annotations

import sys

import click


@click.command()
def doctor() -> None:
    """Check the installation and show how to fix problems."""
    from epprof_nb.commands.doctor_report import run

    sys.exit(run())
