"""Savings that rules ask for: several together take little longer than one."""

from __future__ import annotations

from collections.abc import Generator
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from epprof_nb.analysis.critical_path.changed_durations import Removed
from epprof_nb.analysis.critical_path.saving_without_work import savings_without
from epprof_nb.analysis.findings.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from epprof_nb.analysis.base.index import ProfileIndex

Asking: TypeAlias = Generator[Finding | list[Removed], list[int], None]
"""Yields findings, and work whose savings it is sent; see `savings_without`."""


def findings_of(
    index: ProfileIndex, rules: Iterable[Callable[[ProfileIndex], Iterable[Finding] | Asking]]
) -> list[Finding]:
    """Return the findings of rules, in the order of the rules."""
    running = _Running(together(rule(index) for rule in rules))
    while running.wanted is not None:
        running.go_on(savings_without(index, running.wanted))
    return running.found


def together(rules: Iterable[Iterable[Finding] | Asking]) -> Asking:
    """Yield the findings of rules in their order, and ask for all their savings at once.

    Examples
    --------
    >>> def rule():
    ...     (saving,) = yield [Removed()]
    ...     yield Finding("Too many copies.", saving, 0, 9)
    >>> asking = together([rule(), rule()])
    >>> len(next(asking))
    2
    >>> asking.send([3, 4]).gain_ns, next(asking).gain_ns
    (3, 4)
    """
    all_running = [_Running(rule) for rule in rules]
    while asking := [(each, each.wanted) for each in all_running if each.wanted is not None]:
        savings = iter((yield [removed for _, wanted in asking for removed in wanted]))
        for each, wanted in asking:
            each.go_on(list(islice(savings, len(wanted))))
    for each in all_running:
        yield from each.found


def _yielded(found: Iterable[Finding]) -> Asking:
    yield from found


class _Running:
    """A rule that has run until it asks for savings.

    Attributes
    ----------
    found
        Its findings until now.
    wanted
        The work whose savings it needs to go on; None at its end.
    """

    def __init__(self, rule: Iterable[Finding] | Asking) -> None:
        self.found: list[Finding] = []
        self._rule: Asking = rule if isinstance(rule, Generator) else _yielded(rule)
        self.go_on()

    def go_on(self, savings: list[int] | None = None) -> None:
        """Run the rule until it asks again."""
        self.wanted: list[Removed] | None = None
        try:
            item: Finding | list[Removed] | None = (
                next(self._rule) if savings is None else self._rule.send(savings)
            )
        except StopIteration:
            return
        while isinstance(item, Finding):
            self.found.append(item)
            item = next(self._rule, None)
        self.wanted = item
