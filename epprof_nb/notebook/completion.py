"""Completion of the options of ``%%gpuprofile`` and ``%gpuprofile``, and of their values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from IPython.core.completer import SimpleCompletion, context_matcher

from epprof_nb.core.options import DETAILS

if TYPE_CHECKING:
    from argparse import Action, ArgumentParser
    from collections.abc import Callable, Iterable, Sequence

    from IPython.core.completer import CompletionContext, SimpleMatcherResult

_MAGIC = re.compile(r"(?:.*=)?\s*%(%?)gpuprofile(?=\s)")
_VALUES = {"detail": DETAILS}
"""Values of an option, by the name of its argument; several are separated by commas."""


def matcher(parser: ArgumentParser) -> Callable[[CompletionContext], SimpleMatcherResult]:
    """Return a matcher for IPython's completer.

    If it has no completions, it leaves the text to the other matchers.
    """

    def match(context: CompletionContext) -> SimpleMatcherResult:
        fragment, texts, kind = complete(parser, context.text_until_cursor)
        return {
            "completions": [SimpleCompletion(text, type=kind) for text in texts],
            "matched_fragment": fragment,
            "suppress": bool(texts),
            "ordered": True,
        }

    # Before the matchers of names and files.
    decorate: Any = context_matcher(identifier="gpuprofile_matcher", priority=200)
    matches: Callable[[CompletionContext], SimpleMatcherResult] = decorate(match)
    return matches


def complete(parser: ArgumentParser, text: str) -> tuple[str, list[str], str]:
    """Complete the line of a magic.

    Parameters
    ----------
    parser
        Parser of the options.
    text
        The line up to the cursor.

    Returns
    -------
    fragment, texts, kind
        The end of `text` to replace, what can replace it, and ``"option"`` or ``"value"``.
    """
    magic = _MAGIC.match(text)
    if magic is None:
        return "", [], "option"
    *words, last = re.split(r"\s+", text[magic.end() :].lstrip())
    used, others, open_option = _options(parser, words)
    name, equals, value = last.partition("=")
    actions = parser._option_string_actions  # noqa: SLF001 - no public API
    if open_option is None and equals:
        open_option, last = actions.get(name), value
    if open_option is not None:
        *given, fragment = last.split(",")
        values = _VALUES.get(open_option.dest, ())
        return fragment, _completing(fragment, values, given), "value"
    is_cell_magic = bool(magic[1])
    if not last.startswith("-") and not (is_cell_magic and last == ""):
        return last, [], "option"
    if others and not is_cell_magic:
        return last, [], "option"  # in the statement
    names = [name for name in actions if actions[name] not in used]
    # The short forms are valid, but not listed separately.
    texts = [name for name in names if name.startswith("--") or last == "-"]
    return last, _completing(last, texts), "option"


def _options(
    parser: ArgumentParser, words: Sequence[str]
) -> tuple[list[Action], list[str], Action | None]:
    """Return the options among words, the other words, and the option whose value follows."""
    used: list[Action] = []
    others: list[str] = []
    open_option = None
    for word in words:
        if open_option is not None:
            open_option = None
            continue
        name, equals, _ = word.partition("=")
        option = parser._option_string_actions.get(name)  # noqa: SLF001
        if option is None:
            others.append(word)
            continue
        used.append(option)
        open_option = option if option.nargs is None and not equals else None
    return used, others, open_option


def _completing(fragment: str, texts: Iterable[str], without: Sequence[str] = ()) -> list[str]:
    return [text for text in texts if text.startswith(fragment) and text not in without]
