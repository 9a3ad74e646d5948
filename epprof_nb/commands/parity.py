"""``epprof ep parity``: which operators other execution providers have beyond ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from epprof_nb.core.errors import EpprofError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    import pandas as pd

_ORDER = ("same", "types", "missing", "only here")
_MEANINGS = {
    "same": "the types of the other providers, or more",
    "types": "a kernel, but not for all types of the other providers",
    "missing": "no kernel",
    "only here": "no other provider has a kernel",
}


@click.command()
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
    from epprof_nb.ep import parity as compare_providers

    try:
        table = compare_providers(providers or None)
    except EpprofError as error:
        raise click.ClickException(str(error)) from error
    if csv:
        click.echo(table.to_csv(index=False), nl=False)
    else:
        click.echo("\n".join(describe(table, every=every)))


def describe(table: pd.DataFrame, *, every: bool) -> Iterator[str]:
    """Yield the lines of the report.

    Parameters
    ----------
    table
        Result of `epprof_nb.ep.parity`.
    every
        Whether to list all rows; else those with types or kernels that are missing.
    """
    from epprof_nb.core.ort_binding import PROVIDER

    others = [c for c in table.columns if c.endswith("ExecutionProvider") and c != PROVIDER]
    yield f"{PROVIDER} compared with {', '.join(others) or 'no other provider'}"
    yield ""
    counts = table["status"].value_counts()
    for status in _ORDER:
        operators = table.loc[table["status"] == status, ["domain", "op_type"]].drop_duplicates()
        yield (
            f"{status:<10} {counts.get(status, 0):5d} opset ranges of {len(operators):4d} "
            f"operators: {_MEANINGS[status]}"
        )
    for status in _ORDER if every else ("types", "missing"):
        rows = table[table["status"] == status]
        if len(rows):
            yield ""
            yield f"{status}:"
            yield from (f"  {line}" for line in _lines(rows, others))
    limited = table[table["limits"] != ""]
    if len(limited):
        yield ""
        yield "nodes left to other providers, by operator:"
        for row in limited.to_dict("records"):
            yield f"  {_name(row)}  {row['limits']}"


def _lines(rows: pd.DataFrame, others: list[str]) -> Iterator[str]:
    for row in rows.to_dict("records"):
        has = [other for other in others if isinstance(row[other], str)]
        what = row["missing"] or (", ".join(has) if row["status"] == "missing" else "")
        yield _name(row) + (f"  {what}" if what else "")


def _name(row: Mapping[Hashable, Any]) -> str:
    import pandas as pd

    name = f"{row['domain']}.{row['op_type']}" if row["domain"] else row["op_type"]
    end = "+" if pd.isna(row["last_opset"]) else f"-{row['last_opset']}"
    return f"{name} {row['first_opset']}{end}"
