"""Checks of the attributes and inputs of a node that several operators share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from epprof_nb.ep.kernel import Array, Attributes


def choice(attrs: Attributes, name: str, known: Collection[str], default: str = "") -> str:
    """Return the value of an attribute that names one of several ways to compute.

    Parameters
    ----------
    attrs
        Attributes of the node.
    name
        Name of the attribute.
    known
        Values that the operator knows.
    default
        Value for operator versions without the attribute.

    Raises
    ------
    ValueError
        If the operator does not know the value.
    """
    value: str = attrs.get(name, default)
    if value not in known:
        raise ValueError(f"{name}={value!r} is not one of {', '.join(map(repr, known))}")
    return value


def expect_shape(name: str, x: Array | None, shape: tuple[int, ...]) -> None:
    """Raise ValueError if an input exists and has another shape."""
    if x is not None and x.shape != shape:
        raise ValueError(f"{name} has the shape {x.shape}, not {shape}")


def single(name: str, x: Array) -> int:
    """Return the number that an input of one element holds.

    Raises
    ------
    ValueError
        If the input has more elements, or none.
    """
    if x.size != 1:
        raise ValueError(f"{name} has {x.size} elements, not 1")
    return int(x.reshape(())[()])


def per_axis(attrs: Attributes, name: str, count: int, default: int = 1) -> tuple[int, ...]:
    """Return an attribute with numbers for the spatial axes.

    Parameters
    ----------
    attrs
        Attributes of the node.
    name
        Name of the attribute.
    count
        Number of entries.
    default
        Value of all entries if the node lacks the attribute; also the smallest valid entry.

    Raises
    ------
    ValueError
        If the attribute has more or fewer entries, or one that is too small.
    """
    given = attrs.get(name)
    if not given:
        return (default,) * count
    if len(given) != count:
        raise ValueError(f"{name} has {len(given)} entries, not {count}")
    if min(given) < default:
        raise ValueError(f"{name} has an entry of {min(given)}, below {default}")
    return tuple(given)
