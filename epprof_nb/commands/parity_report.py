"""The text of ``epprof ep parity``."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    Row = Mapping[Hashable, Any]

_ORDER = ("same", "types", "missing", "only here")
_MEANINGS = {
    "same": "the types of the other providers, or more",
    "types": "a kernel, but not for all types of the others",
    "missing": "no kernel",
    "only here": "no other provider has a kernel",
}
_FAMILIES = (
    ("float8", r"float8\w+"), ("float4", r"float4\w+"), ("float6", r"float6\w+"),
    ("int2 to int4", r"u?int[24]"), ("sequences", r"seq\(.+"), ("optionals", r"optional\(.+"),
)  # fmt: skip
"""Names for types that operators have or lack together."""


def describe(table: pd.DataFrame, *, every: bool, width: int = 100) -> Iterator[str]:
    """Yield the lines of the report.

    Parameters
    ----------
    table
        Result of `epprof_nb.ep.parity`.
    every
        Whether to list all operators, or only operators with missing types or kernels.
    width
        Maximum length of a line.
    """
    from epprof_nb.core.ort_binding import PROVIDER

    others = [c for c in table.columns if c.endswith("ExecutionProvider") and c != PROVIDER]
    compared = ", ".join(others) or "no other provider"
    yield from _wrapped(f"{PROVIDER} compared with {compared}", width)
    unknown = table.attrs.get("unknown")
    if unknown:
        yield from _wrapped(
            f"not known: the kernels of {', '.join(unknown)}, because ONNX Runtime cannot load "
            "all their libraries",
            width,
        )
    yield ""
    counts = table["status"].value_counts()
    for status in _ORDER:
        operators = table.loc[table["status"] == status, ["domain", "op_type"]].drop_duplicates()
        ranges = f"{counts.get(status, 0):4d} opset ranges of {len(operators):3d} operators"
        yield from _wrapped(f"{status:<10}{ranges}: {_MEANINGS[status]}", width)
    for status in _ORDER if every else ("types", "missing"):
        rows = table[table["status"] == status].to_dict("records")
        if rows:
            yield ""
            yield f"{status}:"
            yield from _groups(rows, others, width)
    limited = table[table["limits"] != ""].to_dict("records")
    if limited:
        yield ""
        yield "nodes left to other providers, by operator:"
        for row in limited:
            yield f"  {_name(row, row['last_opset'], domain=True)}"
            for reason in row["limits"].split("; "):
                yield from _wrapped(reason, width, 6)


def _groups(rows: Sequence[Row], others: list[str], width: int) -> Iterator[str]:
    """Yield the operators, grouped by their missing types, or by domain and providers."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        heading = _missing_types(row)
        if not heading:
            has = [other for other in others if isinstance(row[other], str)]
            of_domain = row["domain"] or "ai.onnx"
            heading = f"{of_domain} ({', '.join(has)})" if has else of_domain
        groups.setdefault(heading, []).append(row)
    for heading, members in groups.items():
        yield from _wrapped(heading, width, 2)
        yield from _listed(_names(members), width, 6)


def _wrapped(text: str, width: int, indent: int = 0) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2),
        break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip


def _listed(names: list[str], width: int, indent: int) -> Iterator[str]:
    """Yield lines of unbroken names."""
    line = ""
    for name in names:
        if line and indent + len(line) + len(name) + 3 > width:
            yield " " * indent + line + ","
            line = ""
        line += f", {name}" if line else name
    yield " " * indent + line


def _missing_types(row: Row) -> str:
    """Return the types that only other providers take; a family of types counts as one."""
    families: dict[str, None] = {}
    for constraint in filter(None, row["missing"].split("; ")):
        for name in constraint.partition(": ")[2].split(", "):
            family = next((f for f, pattern in _FAMILIES if re.fullmatch(pattern, name)), name)
            families[family] = None
    return ", ".join(sorted(families))


def _names(rows: list[Row]) -> list[str]:
    """Return operators with their opset versions; adjacent ranges are joined."""
    several = len({row["domain"] for row in rows}) > 1
    joined: list[tuple[Row, Any]] = []
    for row in rows:
        same = joined and all(joined[-1][0][key] == row[key] for key in ("domain", "op_type"))
        if same and joined[-1][1] == row["first_opset"] - 1:
            joined[-1] = joined[-1][0], row["last_opset"]
        else:
            joined.append((row, row["last_opset"]))
    return [_name(row, last, domain=several or bool(row["missing"])) for row, last in joined]


def _name(row: Row, last: Any, *, domain: bool) -> str:  # noqa: ANN401
    name = f"{row['domain']}.{row['op_type']}" if domain and row["domain"] else row["op_type"]
    first = row["first_opset"]
    return f"{name} {first}" + ("+" if pd.isna(last) else f"-{last}" if last != first else "")
