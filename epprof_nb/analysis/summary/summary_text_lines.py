"""Lines of a summary as text: its parts, and at the end the queries of their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb.analysis.findings.finding import capitalised, gain_text
from epprof_nb.util.format import duration, size

if TYPE_CHECKING:
    from collections.abc import Sequence

_TITLES = {
    "facts": "Totals",
    "findings": "Findings",
    "notes": "Notes",
    "rankings": "",
    "zeros": "Totals of 0",
    "rows": "Rows of the tables",
}
"""Titles of the sections, in their order in a text."""
_HEAD = "Each [number] names the query at the end that reproduces the values: prof.sql(query)."
_QUERIES = "Queries:"


class TextLines:
    """The lines of a text, which grows part by part up to a length.

    Parameters
    ----------
    sql
        Whether to number the values and to list their queries at the end. If false, values are
        formatted for people: times and sizes with units, columns aligned.
    """

    def __init__(self, *, sql: bool) -> None:
        self._sql = sql
        self._head: list[str] = []
        self._sections: dict[str, list[str]] = {name: [] for name in _TITLES}
        self._queries: list[str] = []
        self._length = 0

    def begin(self, line: str) -> None:
        """Add the first line of the text."""
        self._head = [line, _HEAD] if self._sql else [line]
        self._length = _length(self._head)
        if self._sql:
            self._length += _length(["", _QUERIES])

    def add(self, section: str, item: Any, max_length: int) -> bool:  # noqa: ANN401
        """Add a part with its query if both fit; return whether they did."""
        query = item.get("query", item.get("evidence")) if isinstance(item, dict) else None
        mark, queries = "", []
        if self._sql and query is not None:
            number = len(self._queries) + 1
            mark, queries = f" [{number}]", [f"[{number}] {query}"]
        added = self._lines_of(section, item, mark)
        if section == "facts" and not item["value"]:
            section = "zeros"
        if not self._sql and (section == "zeros" or (section == "rows" and not any(item.values()))):
            return True  # nothing that people need to know
        if _TITLES[section] and not self._sections[section]:
            added = ["", f"{_TITLES[section]}:", *added]
        length = _length(added) + _length(queries)
        if self._length + length > max_length:
            return False
        self._sections[section] += added
        self._queries += queries
        self._length += length
        return True

    def text(self, last: str) -> str:
        """Return the text, which ends with the queries and the line `last`, if it is not empty."""
        queries = ["", _QUERIES, *self._queries] if self._queries else []
        parts = [line for lines in self._sections.values() for line in lines]
        return "\n".join([*self._head, *parts, *queries, *([last] if last else [])])

    def _lines_of(self, section: str, item: Any, mark: str) -> list[str]:  # noqa: ANN401
        match section:
            case "facts":
                name = item["name"] if self._sql else item["name"].replace("_ns", "")
                return [f"- {name}: {self._total(item['value'], item['unit'])}{mark}"]
            case "findings":
                gain = gain_text(item["gain_ns"], item["gain_low_ns"], item["gain_high_ns"])
                sentences = (
                    item["text"], item["remedy"], f"{capitalised(gain)}." if gain else "",
                    item.get("other_remedy", ""),
                )  # fmt: skip
                text = " ".join(part for part in sentences if part)
                return [f"- {text}{mark}", f"    prof.evidence({item['rank']})"]
            case "notes":
                return [f"- {item}"]
            case "rows":
                return [f"- {name}: {self._total(rows, '')}" for name, rows in item.items()]
        shown = f"{len(item['rows'])} of {item['groups']:,}"
        title = f"{capitalised(item['title'])} ({shown}):{mark}"
        if self._sql:
            cells = [["" if v is None else str(v) for v in row] for row in item["rows"]]
            return ["", title, *(" | ".join(row) for row in [item["columns"], *cells])]
        return ["", title, *_aligned(item["columns"], item["rows"])]

    def _total(self, value: int, unit: str) -> str:
        text = _for_people(value, unit)
        return f"{value} ({text})" if self._sql and unit else str(value) if self._sql else text


def _length(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _for_people(value: object, unit: str) -> str:
    if not isinstance(value, int):
        return "" if value is None else str(value)
    match unit:
        case "ns":
            return duration(value)
        case "bytes":
            return size(value)
        case "line":
            return str(value)
    return f"{value:,}"


def _aligned(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return the lines of a table: texts on the left of their column, numbers on the right.

    Columns without a value are left out, and so are full names beside short ones.
    """
    shown = []
    for name, values in zip(columns, zip(*rows, strict=True), strict=True):
        if all(v is None for v in values) or (name == "name" and "short_name" in columns):
            continue
        unit = "ns" if name.endswith("_ns") else name
        texts = [name.removesuffix("_ns").replace("_", " ")]
        texts += [_for_people(value, unit) for value in values]
        width = max(map(len, texts))
        is_text = any(isinstance(value, str) for value in values)
        shown.append([text.ljust(width) if is_text else text.rjust(width) for text in texts])
    return [f"  {'  '.join(row)}".rstrip() for row in zip(*shown, strict=True)]
