"""Syntax highlighting of Python source: keywords, strings and comments."""

from __future__ import annotations

import io
import keyword
import tokenize
from itertools import pairwise

Span = tuple[int, int, str]
"""Start and end in a line, in UTF-16 units as in JavaScript, and the kind: k, s or c."""

_STRINGS = {
    getattr(tokenize, name)
    for name in ("STRING", "FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END")
    if hasattr(tokenize, name)
}


def syntax_spans(lines: list[str]) -> list[list[Span]]:
    """Return the keywords, strings and comments of each line.

    Parameters
    ----------
    lines
        Source lines, which may not be Python: lines after the first tokenizer error are not
        highlighted.
    """
    spans: list[list[Span]] = [[] for _ in lines]
    text = "\n".join(lines) + "\n"
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            kind = _kind(token)
            if kind:
                _add_token(spans, lines, token, kind)
    except (tokenize.TokenError, SyntaxError):
        pass
    return [_merged(spans_of_line) for spans_of_line in spans]


def _kind(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.COMMENT:
        return "c"
    if token.type in _STRINGS:
        return "s"
    return "k" if token.type == tokenize.NAME and keyword.iskeyword(token.string) else ""


def _add_token(
    spans: list[list[Span]], lines: list[str], token: tokenize.TokenInfo, kind: str
) -> None:
    (first, begin), (last, end) = token.start, token.end
    for number in range(first, min(last, len(lines)) + 1):
        line = lines[number - 1]
        left = begin if number == first else 0
        right = min(end, len(line)) if number == last else len(line)
        if left < right:
            spans[number - 1].append((_utf16(line, left), _utf16(line, right), kind))


def _utf16(line: str, column: int) -> int:
    return len(line[:column].encode("utf-16-le", "surrogatepass")) // 2


def _merged(spans: list[Span]) -> list[Span]:
    """Merge adjacent spans of the same kind, such as the parts of an f-string."""
    if len(spans) < 2:
        return spans
    merged = [spans[0]]
    for before, span in pairwise(spans):
        if before[1] == span[0] and before[2] == span[2]:
            merged[-1] = (merged[-1][0], span[1], span[2])
        else:
            merged.append(span)
    return merged
