"""Text for readers: numbers with three significant digits and a unit, elided names."""

from __future__ import annotations

_TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_BYTE_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def three_digits(value: float) -> str:
    """Format `value` with three significant digits, and with all digits before the point.

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
    """Format a time, given in nanoseconds, in the unit that fits.

    Examples
    --------
    >>> duration(1_840_000_000), duration(412), duration(0)
    ('1.84 s', '412 ns', '0 s')
    """
    if ns == 0:
        return "0 s"
    for scale, unit in _TIME_UNITS:
        # 999.7 µs would be rounded to 1,000 µs: prefer 1.00 ms.
        if abs(ns) >= scale * 0.9995:
            return f"{ns:.0f} ns" if unit == "ns" else f"{three_digits(ns / scale)} {unit}"
    return f"{ns:.0f} ns"


def size(count: float) -> str:
    """Format a number of bytes in decimal units.

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
    """Format a count with its noun: ``1 copy``, ``4,212 kernels``."""
    return f"{count:,} {word if count == 1 else words or word + 's'}"


def shorten(text: str, limit: int) -> str:
    """Put `text` on one line of at most `limit` characters, elided in the middle.

    The end of a kernel's name is as informative as its beginning, so both are kept.

    Examples
    --------
    >>> shorten("void gemm_kernel<128, 64>()", 12)
    'void g…64>()'
    """
    line = " ".join(text.split())
    return elide(line, limit, tail=limit - 1 - limit // 2)


def elide(text: str, limit: int, *, tail: int) -> str:
    """Cut a text of more than `limit` characters; its last `tail` characters are kept."""
    if len(text) <= limit:
        return text
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"
