"""Summaries as text and as JSON of at most a given length, the most important parts first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, get_args

from epprof_nb.analysis.summary.summary_text_lines import TextLines
from epprof_nb.util.format import printable, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.summary.summary_facts import Fact, Ranking, Summary

Format = Literal["text", "json"]
MIN_CHARACTERS = 500
_NAME_CHARACTERS = 100
_NOTE_CHARACTERS = 400
_MAX_NOTES = 20
_FACTS_FIRST = 4


def render(summary: Summary, max_chars: int, form: str, *, sql: bool = True) -> str:
    """Return a summary as text or JSON.

    Parameters
    ----------
    summary
        The summary.
    max_chars
        Maximum length of the result, at least `MIN_CHARACTERS`. Parts that do not fit are left
        out, the least important first, and counted.
    form
        ``"text"`` or ``"json"``.
    sql
        Whether a text has the queries, at its end; JSON always has them.

    Raises
    ------
    ValueError
        If `max_chars` is too small or `form` is unknown.
    """
    if form not in get_args(Format):
        raise ValueError(f"format must be one of {', '.join(get_args(Format))}, not {form!r}")
    if max_chars < MIN_CHARACTERS:
        raise ValueError(f"max_chars must be at least {MIN_CHARACTERS}, not {max_chars}")
    if form == "json":
        return _as_json(summary, max_chars)
    return _as_text(summary, max_chars, TextLines(sql=sql))


def _other(remedy: str) -> dict[str, str]:
    return {"other_remedy": _clean(remedy, _NOTE_CHARACTERS)} if remedy else {}


def _parts(summary: Summary) -> Iterator[tuple[str, Any]]:
    """Yield section and item, by importance. Ranking rows can be cut, other items cannot."""
    facts = [("facts", _fact(fact)) for fact in summary.facts if fact.value]
    yield from facts[:_FACTS_FIRST]
    yield from (
        ("findings", {
            "text": _clean(found.finding.text, _NOTE_CHARACTERS),
            "rank": rank,
            "kind": found.finding.kind,
            "remedy": _clean(found.finding.remedy, _NOTE_CHARACTERS),
            **_other(found.finding.other_remedy),
            "gain_ns": found.finding.gain_ns,
            "gain_low_ns": found.finding.low_ns,
            "gain_high_ns": found.finding.high_ns,
            "start_ns": found.finding.start_ns,
            "end_ns": found.finding.end_ns,
            "evidence": found.query,
        })
        for rank, found in enumerate(summary.findings, 1)
    )  # fmt: skip
    rankings = [("rankings", _ranking(ranking)) for ranking in summary.rankings]
    yield from rankings[:1]
    yield from (("notes", _clean(note, _NOTE_CHARACTERS)) for note in summary.notes[:_MAX_NOTES])
    yield from facts[_FACTS_FIRST:]
    yield from rankings[1:]
    yield from (("facts", _fact(fact)) for fact in summary.facts if not fact.value)
    yield from (("rows", {name: rows}) for name, rows in summary.rows.items())


def _fact(fact: Fact) -> dict[str, Any]:
    return {"name": fact.name, "value": fact.value, "unit": fact.unit, "query": fact.query}


def _ranking(ranking: Ranking) -> dict[str, Any]:
    return {
        "title": ranking.title,
        "groups": ranking.groups,
        "query": ranking.query,
        "columns": list(ranking.columns),
        "rows": [[_cell(value) for value in row] for row in ranking.rows],
    }


def _cell(value: object) -> object:
    return _clean(value, _NAME_CHARACTERS) if isinstance(value, str) else value


def _clean(text: str, limit: int) -> str:
    """Put a text on one line and escape control characters."""
    return printable(shorten(text[: 100 * limit], limit))


def _shorter(section: str, item: Any) -> Any:  # noqa: ANN401
    """Return the item with fewer rows; None if it cannot be shortened."""
    if section != "rankings" or len(item["rows"]) <= 1:
        return None
    return {**item, "rows": item["rows"][:-1]}


def _as_json(summary: Summary, max_chars: int) -> str:
    result: dict[str, Any] = {"summary": _clean(summary.line, _NOTE_CHARACTERS), "omitted": 0}
    # The number of omitted parts grows while others are added.
    room = max_chars - len(json.dumps(result)) - len("000")
    for section, whole in _parts(summary):
        item = whole
        while item is not None:
            cost = len(json.dumps(item)) + len(", ")
            cost += 0 if section in result else len(json.dumps(section)) + len(": [], ")
            if cost <= room:
                break
            item = _shorter(section, item)
        if item is None:
            result["omitted"] += 1
            continue
        room -= cost
        if section == "rows":
            result.setdefault(section, {}).update(item)
        else:
            result.setdefault(section, []).append(item)
    return json.dumps(result)


def _as_text(summary: Summary, max_chars: int, lines: TextLines) -> str:
    lines.begin(_clean(summary.line.replace("   ", " | "), _NOTE_CHARACTERS))
    last = "({} parts omitted: max_chars is {:,})"
    room = max_chars - len(last.format("0000", max_chars)) - 1
    omitted = 0
    for section, whole in _parts(summary):
        item = whole
        while item is not None and not lines.add(section, item, room):
            item = _shorter(section, item)
        omitted += item is None
    return lines.text(last.format(omitted, max_chars) if omitted else "")
