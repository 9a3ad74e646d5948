"""``epprof ep parity``: a comparison of the operators of execution providers."""

from __future__ import annotations

import shutil

import click

from epprof_nb.core.errors import EpprofError

_WIDTH = 100


@click.command()
@click.option(
    "--provider", "providers", multiple=True, metavar="NAME",
    help="Compare with this provider only; may be repeated.",
)  # fmt: skip
@click.option(
    "--all", "every", is_flag=True, help="List all operators, not only those that differ."
)
@click.option("--csv", is_flag=True, help="Print the whole table as CSV.")
def parity(*, providers: tuple[str, ...], every: bool, csv: bool) -> None:
    """Compare the operators, opset versions and types of execution providers.

    The kernels of each provider come from the installed ONNX Runtime.
    """
    from epprof_nb.commands.parity_report import describe
    from epprof_nb.ep import parity as compare_providers

    try:
        table = compare_providers(providers or None)
    except EpprofError as error:
        raise click.ClickException(str(error)) from error
    if csv:
        click.echo(table.to_csv(index=False), nl=False)
    else:
        width = min(shutil.get_terminal_size((_WIDTH, 24)).columns, _WIDTH)
        click.echo("\n".join(describe(table, every=every, width=width)))
