"""Links from Markdown pages to files outside ``docs/``, as links to the repository.

The pages are read on the repository's web site, too, where relative links are right. Sphinx knows
only the files in its own folder.
"""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_OUTSIDE = re.compile(r"\[(?P<text>[^\]]+)\]\(\.\./(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


def source_url() -> str:
    """Return the address of the repository, which pyproject.toml defines.

    Raises
    ------
    LookupError
        If the installed package names no address with the label "Source".
    """
    for entry in metadata.metadata("epprof-nb").get_all("Project-URL") or ():
        label, url = entry.split(", ", 1)
        if label == "Source":
            return url.rstrip("/")
    raise LookupError("pyproject.toml defines no project URL with the label Source")


def rewrite(text: str, root: Path) -> str:
    """Return the Markdown `text` with its links to files outside ``docs/`` replaced.

    Parameters
    ----------
    text
        Source of a page.
    root
        The repository's root folder, in which the files are looked up.

    Raises
    ------
    FileNotFoundError
        If a link leads to no file of the repository.
    """

    def replace(match: re.Match[str]) -> str:
        text, path, anchor = match["text"], match["path"], match["anchor"] or ""
        if not (root / path).exists():
            raise FileNotFoundError(f"A page links to ../{path}, which is not in the repository")
        if path.endswith(".ipynb"):  # a page of this documentation
            return f"{{doc}}`{text} <{path.removesuffix('.ipynb')}>`"
        return f"[{text}]({source_url()}/blob/HEAD/{path}{anchor})"

    return _OUTSIDE.sub(replace, text)


def _on_source_read(app: Sphinx, docname: str, source: list[str]) -> None:
    if Path(app.env.doc2path(docname)).suffix == ".md":
        source[0] = rewrite(source[0], Path(app.srcdir).parent)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("source-read", _on_source_read)
    return {"parallel_read_safe": True}
