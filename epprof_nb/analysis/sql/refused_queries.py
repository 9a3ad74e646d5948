"""Queries that are refused before they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

_READING = ("SELECT", "EXPLAIN")


def check_text(query: str) -> None:
    """Raise ``ValueError`` for a query that is not valid text."""
    try:
        query.encode()
    except UnicodeEncodeError as error:
        found = f"U+{ord(query[error.start]):04X}"
        raise ValueError(
            f"the query contains the lone surrogate {found} at character {error.start}, which is "
            "not valid text. Remove it."
        ) from error


def check_statement(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """Raise ``ValueError`` for more than one statement, and for one that does not only read."""
    statements = connection.extract_statements(query)
    if len(statements) != 1:
        raise ValueError(f"the query must be one statement, not {len(statements)}")
    kind = statements[0].type.name
    if kind not in _READING:
        raise ValueError(
            f"the query must be a SELECT statement, not {kind}: a profile cannot be changed, and "
            "a query cannot reach files"
        )
