"""The command line ``epprof``, with a command for each task outside a notebook.

Each command is a file of `epprof_nb.commands`. These files import what a command needs when it
runs, so that ``epprof run`` and ``epprof --help`` start quickly.
"""

from __future__ import annotations

import click

from epprof_nb.commands.calibrate import calibrate
from epprof_nb.commands.compare import compare
from epprof_nb.commands.convert import convert
from epprof_nb.commands.demo import demo
from epprof_nb.commands.doctor import doctor
from epprof_nb.commands.info import info
from epprof_nb.commands.mcp import mcp
from epprof_nb.commands.parity import parity
from epprof_nb.commands.report import report
from epprof_nb.commands.run import run
from epprof_nb.commands.summary import summary
from epprof_nb.core.version import package_version


@click.group()
@click.version_option(package_version(), prog_name="epprof")
def main() -> None:
    """Commands for epprof_nb, the GPU profiler for notebooks."""


@main.group()
def ep() -> None:
    """Commands for kernels in Python, ONNX Runtime's execution provider."""


for command in (
    calibrate, compare, convert, demo, doctor, info, mcp, report, run, summary,
):  # fmt: skip
    main.add_command(command)
ep.add_command(parity)

if __name__ == "__main__":
    main()
