"""Keywords, strings and comments of Python source, by Python's own tokenizer."""

from __future__ import annotations

import io
import keyword
import tokenize
from itertools import pairwise

Span = tuple[int, int, str]
"""Start and end in a line, in UTF-16 units as JavaScript counts, and what it is: k, s or c."""

_STRINGS = {
    getattr(tokenize, name)
    for name in ("STRING", "FSTRING_START", "FSTRING_MIDDLE", "FSTRING_END")
    if hasattr(tokenize, name)
}


def highlight(lines: list[str]) -> list[list[Span]]:
    """Return the spans of each line that deserve a colour.

    Parameters
    ----------
    lines
        The source, a string a line. It need not be Python throughout: what follows the first
        place where the tokenizer gives up stays plain.
    """
    spans: list[list[Span]] = [[] for _ in lines]
    text = "\n".join(lines) + "\n"
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            kind = _kind(token)
            if kind:
                _mark(spans, lines, token, kind)
    except (tokenize.TokenError, SyntaxError):
        pass
    return [_joined(of_line) for of_line in spans]


def _kind(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.COMMENT:
        return "c"
    if token.type in _STRINGS:
        return "s"
    return "k" if token.type == tokenize.NAME and keyword.iskeyword(token.string) else ""


def _mark(spans: list[list[Span]], lines: list[str], token: tokenize.TokenInfo, kind: str) -> None:
    (first, begin), (last, end) = token.start, token.end
    for number in range(first, min(last, len(lines)) + 1):
        line = lines[number - 1]
        left = begin if number == first else 0
        right = min(end, len(line)) if number == last else len(line)
        if left < right:
            spans[number - 1].append((_utf16(line, left), _utf16(line, right), kind))


def _utf16(line: str, column: int) -> int:
    return len(line[:column].encode("utf-16-le", "surrogatepass")) // 2


def _joined(spans: list[Span]) -> list[Span]:
    """Put together what touches and is the same: the parts of a formatted string, mostly."""
    if len(spans) < 2:
        return spans
    joined = [spans[0]]
    for before, now in pairwise(spans):
        if before[1] == now[0] and before[2] == now[2]:
            joined[-1] = (joined[-1][0], now[1], now[2])
        else:
            joined.append(now)
    return joined
