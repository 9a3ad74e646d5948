"""The command line: ``epprof demo | doctor | report FILE``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from epprof_nb.core.errors import EpprofError
from epprof_nb.core.version import package_version


@click.group()
@click.version_option(package_version(), prog_name="epprof")
def main() -> None:
    """Commands for epprof_nb, the GPU profiler for notebooks."""


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
    from epprof_nb.redaction.profile import parts_of

    target = output or file.with_suffix(".html")
    _refuse_unwritable(target, "--output")
    names = [part.strip() for part in redact.split(",") if part.strip()]
    try:
        parts = parts_of(True if names == ["all"] else names)
    except ValueError as error:
        raise click.BadParameter(f"{error} (here: all)", param_hint="--redact") from error
    try:
        load(file).to_html(target, redact=parts)
    except (EpprofError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"Wrote {target}")


def _refuse_unwritable(path: Path, option: str) -> None:
    from epprof_nb.formats.atomic_file import check_writable

    try:
        check_writable(path)
    except (OSError, ValueError) as error:
        raise click.BadParameter(str(error), param_hint=option) from error


if __name__ == "__main__":
    main()
