"""Command line of ``epprof demo``. `epprof_nb.commands.demo_workload` runs the workload."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from epprof_nb.commands.parameters import NEW_FILE, refuse_unwritable


@click.command()
@click.option(
    "--report",
    type=NEW_FILE,
    help="Path of the HTML report; default: a file in a new temporary folder.",
)
def demo(report: Path | None) -> None:
    """Profile a small training loop, print its ops and write an HTML report."""
    from epprof_nb.commands.demo_workload import run
    from epprof_nb.views.renderers.text import as_text
    from epprof_nb.views.view_model import ViewModel

    if report is not None:
        refuse_unwritable(report, "--report")
    prof, where = run()
    click.echo(as_text(ViewModel(prof)))
    click.echo()
    click.echo(where)
    if report is None:  # not in the working directory, which may be a checkout
        report = Path(tempfile.mkdtemp(prefix="epprof-demo-")) / "epprof-demo.html"
    prof.to_html(report)
    click.echo(f"Report with the timeline: {report.resolve()} (open it in a browser)")
    click.echo("In a notebook: jupyter lab notebooks/01_quickstart.ipynb")
