"""Names of methods that several files define for one public class."""

from __future__ import annotations

from types import FunctionType


def name_methods(public: str, *parts: type) -> None:
    """Give the methods of the parts of a class the name of the class.

    An error in a call, such as an unknown argument, then names the class that users know.

    Examples
    --------
    >>> class Part:
    ...     def lines(self): ...
    >>> class Book(Part): ...
    >>> name_methods("Book", Part)
    >>> Book.lines.__qualname__
    'Book.lines'
    """
    for part in parts:
        for name, method in vars(part).items():
            if isinstance(method, FunctionType):
                method.__qualname__ = f"{public}.{name}"
