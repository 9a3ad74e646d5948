"""Numbers and names as people read them: three significant digits, a unit, no noise."""

from __future__ import annotations

_TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_BYTE_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def three_digits(value: float) -> str:
    """Write `value` with three significant digits, and none lost before the point.

    Examples
    --------
    >>> three_digits(1.8432), three_digits(61.04), three_digits(4212.3)
    ('1.84', '61.0', '4,212')
    """
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:,.0f}"
    if magnitude >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}"


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
        # 999.7 us rounds to 1000: it reads better as 1.00 ms.
        if abs(ns) >= scale * 0.9995:
            return f"{ns:.0f} ns" if unit == "ns" else f"{three_digits(ns / scale)} {unit}"
    return f"{ns:.0f} ns"


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
    return f"{count:.0f} B"


def percent(share: float) -> str:
    """Write a share of 1 as whole percent; 0 and 100 are kept for nothing and for all.

    Examples
    --------
    >>> percent(0.614), percent(0.0001), percent(0.9999)
    ('61 %', '< 1 %', '> 99 %')
    """
    if 0 < share < 0.005:
        return "< 1 %"
    if 0.995 <= share < 1:
        return "> 99 %"
    return f"{share * 100:.0f} %"


def plural(count: int, word: str, words: str | None = None) -> str:
    """Write a count with its word, as ``1 copy`` and ``4,212 kernels``."""
    return f"{count:,} {word if count == 1 else words or word + 's'}"


def shorten(text: str, limit: int) -> str:
    """Put `text` on one line of at most `limit` characters, cut in the middle.

    The end of a kernel's name tells as much as its beginning, so both stay.
    """
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    head = limit // 2
    tail = limit - 1 - head
    return f"{line[:head]}…{line[len(line) - tail :]}"
