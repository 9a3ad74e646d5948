"""The directive ``gpuprofile-options``: the options of ``%%gpuprofile`` as a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.parsers.rst import Directive

from epprof_nb.notebook.magic import ProfileMagics

if TYPE_CHECKING:
    from sphinx.application import Sphinx


class MagicOptions(Directive):
    """Definition list made from the parser that the magic itself uses."""

    def run(self) -> list[nodes.Node]:
        """Return the list."""
        entries = nodes.definition_list()
        for action in ProfileMagics.gpuprofile.parser._actions:  # noqa: SLF001 - argparse has no public list
            value = f" {action.metavar}" if action.metavar else ""
            term = nodes.term("", "", nodes.literal(text=", ".join(action.option_strings) + value))
            if not action.option_strings:
                term = nodes.term("", "", nodes.literal(text=action.dest))
            text = nodes.definition("", nodes.paragraph(text=action.help or ""))
            entries += nodes.definition_list_item("", term, text)
        return [entries]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("gpuprofile-options", MagicOptions)
    return {"parallel_read_safe": True}
