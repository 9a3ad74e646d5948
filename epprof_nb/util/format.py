"""Formatting of numbers and names for people: three significant digits and a unit.

The viewer's ``frontend/src/base/format.ts`` follows the same rules; both are tested with
``tests/data/number_format.json``.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_DOTTED = re.compile(r"\w+(?:\.\w+)+(?<!\.py)")
_TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))
_BYTE_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def three_digits(value: float) -> str:
    """Write `value` with three significant digits, keeping all digits before the point.

    Examples
    --------
    >>> three_digits(1.8432), three_digits(61.04), three_digits(4212.3)
    ('1.84', '61.0', '4,212')
    """
    magnitude = abs(value)
    return _fixed(value, 0 if magnitude >= 99.95 else 1 if magnitude >= 9.995 else 2)


def _fixed(value: float, digits: int) -> str:
    """Write `value` with `digits` decimals, rounding half away from zero as JavaScript does."""
    return f"{Decimal(float(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):,}"


def duration(ns: float) -> str:
    """Write a time in the unit that fits, from nanoseconds.

    Examples
    --------
    >>> duration(1_840_000_000), duration(412), duration(0)
    ('1.84 s', '412 ns', '0 s')
    """
    if ns == 0:
        return "0 s"
    for scale, unit in _TIME_UNITS:
        # Write 999.7 us as 1.00 ms, not as 1000 us.
        if abs(ns) >= scale * 0.9995:
            return f"{three_digits(ns / scale)} {unit}"
    return f"{_fixed(ns, 0)} ns"


def signed_duration(ns: float) -> str:
    """Write a change of a time with its sign.

    Examples
    --------
    >>> signed_duration(1_840_000), signed_duration(-412), signed_duration(0)
    ('+1.84 ms', '-412 ns', '0 s')
    """
    return f"{'-' if ns < 0 else '+' if ns > 0 else ''}{duration(abs(ns))}"


def size(count: float) -> str:
    """Write a number of bytes in decimal units.

    Examples
    --------
    >>> size(1_200_000_000), size(96)
    ('1.20 GB', '96 B')
    """
    for scale, unit in _BYTE_UNITS:
        if abs(count) >= scale * 0.9995:
            return f"{three_digits(count / scale)} {unit}"
    return f"{_fixed(count, 0)} B"


def percent(share: float) -> str:
    """Write a share of 1 in percent: with one decimal below 10 %, else as whole percent.

    Only exact values are written as "0 %" and "100 %".

    Examples
    --------
    >>> percent(0.614), percent(0.061), percent(0.0001), percent(0.9999)
    ('61 %', '6.1 %', '< 0.1 %', '> 99 %')
    """
    value = share * 100
    if value == 0:
        return "0 %"
    if 0 < value < 0.05:
        return "< 0.1 %"
    if 99.5 <= value < 100:
        return "> 99 %"
    return f"{_fixed(value, 0 if abs(value) >= 9.95 else 1)} %"


def signed_percent(change: float) -> str:
    """Write a relative change in percent with its sign: with one decimal below 10 %.

    Examples
    --------
    >>> signed_percent(0.9963), signed_percent(-0.0312), signed_percent(0)
    ('+100 %', '-3.1 %', '0 %')
    """
    value = change * 100
    digits = 0 if abs(value) >= 9.95 else 1
    text = f"{value:+,.{digits}f}"
    return "0 %" if text in ("+0.0", "-0.0") else f"{text} %"


def plural(count: int, word: str, words: str | None = None) -> str:
    """Write a count with its word, such as ``1 copy`` and ``4,212 kernels``."""
    return f"{count:,} {word if count == 1 else words or word + 's'}"


def shorten(text: str, limit: int) -> str:
    """Put `text` on one line of at most `limit` characters, elided in the middle.

    Names of kernels often differ only at their ends, so both ends stay. The end of a module's path
    identifies the module, so its first parts are removed.

    Examples
    --------
    >>> shorten("y = model(inputs)", 9), shorten("model.blocks.0.attention", 14)
    ('y = …uts)', '…0.attention')
    """
    line = " ".join(text.split())
    if len(line) > limit and _DOTTED.fullmatch(line):
        dot = line.find(".", len(line) - limit)
        if 0 <= dot < len(line) - limit // 2:
            return f"…{line[dot + 1 :]}"
    return elide(line, limit, tail=limit - 1 - limit // 2)


def printable(text: str) -> str:
    r"""Return a text with its control characters escaped, which a terminal would obey.

    Examples
    --------
    >>> print(printable("a\x1b[31m"))
    a\x1b[31m
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def with_glyphs(text: str) -> str:
    """Return a text with its characters without a glyph, such as control characters, as spaces."""
    return "".join(c if c.isprintable() else " " for c in text)


def in_backticks(text: str, limit: int) -> str:
    """Shorten a name, replace its backticks, and put it between backticks.

    Examples
    --------
    >>> in_backticks("y = `x`", 60)
    "`y = 'x'`"
    """
    return f"`{without_backticks(text, limit)}`"


def without_backticks(text: str, limit: int) -> str:
    """Shorten a text for a sentence in which backticks enclose names."""
    return shorten(text.replace("`", "'"), limit)


def elide(text: str, limit: int, *, tail: int) -> str:
    """Cut a text of more than `limit` characters; its last `tail` characters are kept.

    If the text was cut before, the part between both cuts is left out, too.

    Examples
    --------
    >>> elide("y = model(inputs)", 9, tail=2), elide("y = model(… + bias)", 14, tail=7)
    ('y = mo…s)', 'y = mo…+ bias)')
    """
    if len(text) <= limit:
        return text
    head, _, _ = text[: limit - 1 - tail].partition("…")
    _, _, end = text[len(text) - tail :].rpartition("…")
    return f"{head}…{end}"


def sparkline(values: Sequence[float]) -> str:
    """Draw values as one block character each, from the smallest to the largest.

    Examples
    --------
    >>> sparkline([1, 2, 3, 8]), sparkline([5, 5])
    ('▁▂▃█', '▄▄')
    """
    low, high = min(values, default=0), max(values, default=0)
    if low == high:
        return "▄" * len(values)
    blocks = "▁▂▃▄▅▆▇█"
    return "".join(blocks[min(int((v - low) / (high - low) * 8), 7)] for v in values)


def base_name(path: str) -> str:
    r"""Return the last part of a path of any system; other texts as they are.

    Examples
    --------
    >>> base_name("/home/ada/model.py"), base_name("C:\\work\\a.py"), base_name("In[3]")
    ('model.py', 'a.py', 'In[3]')
    """
    return re.split(r"[/\\]", path)[-1]


def format_error(error: BaseException) -> str:
    """Return the type and message of an exception."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
