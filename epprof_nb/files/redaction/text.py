"""Patterns of paths, hosts and shapes in text, and their replacement.

Paths cannot be recognised with certainty. Ambiguous text is treated as a path, because a redacted
formula does less harm than a leaked directory name.
"""

from __future__ import annotations

import contextlib
import getpass
import re
import socket
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

PATH, HOST, USER, SHAPE, SOURCE = "(path)", "(host)", "(user)", "(shape)", "(source)"

_SHORTEST_CODE = 6
"""Shorter pieces of source text (``x = 1``) reveal nothing and may be part of other words."""
_COMMON_NAMES = {"root", "user", "users", "ubuntu", "jovyan", "admin", "localhost", "runner"}

# Texts may be truncated, so the closing quotation mark may be missing.
_QUOTED = re.compile(r"""(["'])((?:(?!\1)[^\n])*+)(\1|$)""", re.MULTILINE)
_QUOTED_PATH = re.compile(r"[/\\]|^[\w .~-]*\.[A-Za-z]\w{0,5}$")
# A name before brackets names a function, unless they contain a line number: `net.py(4): forward`.
_NO_CALL = r"(?!\((?!\d+\):))"
_BARE_PATH = re.compile(
    r"""\b[a-z][a-z0-9+.-]*://[^\s"'<>]+"""  # a URL
    r"""|(?<![\w.)\]/])(?!//=?(?:\s|$))(?:[A-Za-z]:[\\/]|\\\\|~?/|~\w+/|\.\.?[\\/])[^\s"'<>|;,()\[\]]+"""
    r"""|(?<![\w/.-])[\w.-]++(?:[\\/][\w.-]++)*[\\/][\w.-]+\.[A-Za-z]\w{0,5}\b"""
    rf"""{_NO_CALL}"""
)
_WORD = re.compile(rf"(?<![\w./\\-])[\w.-]++{_NO_CALL}")
_FILE_TYPES = {
    "arrow", "bin", "bz2", "cfg", "ckpt", "cpp", "csv", "cu", "engine", "epprof", "gguf", "gz",
    "h5", "hdf5", "ini", "ipynb", "jpeg", "jpg", "json", "jsonl", "npy", "npz", "onnx", "ort",
    "parquet", "pb", "pickle", "pkl", "png", "pt", "pth", "py", "pyc", "pyw", "safetensors", "sh",
    "sqlite", "tar", "tflite", "toml", "tsv", "txt", "xml", "yaml", "yml", "zip", "zst",
}  # fmt: skip
"""Extensions that identify a word without a folder as the name of a file."""
_HOSTS = re.compile(
    r"""(?<=://)[^\s/"'<>]+"""
    r"""|(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}\b(?!\()"""
    r"""|\b\d{1,3}(?:\.\d{1,3}){3}\b"""
    r"""|\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}\b"""
    # Compressed IPv6. Addresses begin with these digits; slices and names in C++ rarely do.
    r"""|(?<![\w:.])(?=[0-9a-f:]*::)[23f][0-9a-f]{3}(?::[0-9a-f]{0,4}){2,7}(?:%\w+)?(?![\w:])"""
    r"""|\bGPU-[0-9a-f]{8}[0-9a-f-]*"""
    r"""|(?<![\w.-])[\w-]++(?:\.[\w-]+)*\.(?:com|org|net|edu|gov|local|lan|internal|corp|intranet|cluster)"""
    r"""\b(?!\.\w|\()"""
    r"""|(?<=["'])[a-z0-9-]+(?:\.[a-z0-9-]+)+\.[a-z]{2,}(?=["':/])""",
    re.IGNORECASE,
)
_HOMES = re.compile(r"""((?:/home/|/Users/|\\Users\\))[^\s/\\"']+""")
_THREAD_OF = re.compile(r"\b(Thread-\d+) \([^()]*\)")
"""Names that Python gives to threads, with the function that they run."""
_INTEGERS = r"\s*-?\d+\s*"
_LISTED_SHAPE = re.compile(
    rf"[\[(](?:{_INTEGERS},)+(?:{_INTEGERS})?[\])]"
    r"|\b(?:float|double|half|bool|string|int|uint|bfloat|complex|[bfius])\d*(?:_t)?"
    rf"\[{_INTEGERS}(?:,{_INTEGERS})*\]"
)
_CROSSED_SHAPE = re.compile(r"(?<![\w.])\d+(?:\s?[x\N{MULTIPLICATION SIGN}]\s?\d+)+(?!\w)")


class Filter:
    """Replaces sensitive information in texts.

    Parameters
    ----------
    paths, hosts, shapes
        Kinds of information to replace.
    source
        Whether to replace the functions in the names of threads.
    source_pieces
        Pieces of source text to replace wherever they are quoted.
    files
        Names of files to replace everywhere, in any form.
    """

    def __init__(
        self,
        *,
        paths: bool,
        hosts: bool,
        shapes: bool,
        source: bool = False,
        source_pieces: Iterable[str] = (),
        files: Iterable[str] = (),
    ) -> None:
        self.paths, self.hosts, self.shapes, self.source = paths, hosts, shapes, source
        names = "|".join(map(re.escape, sorted(filter(None, files), key=len, reverse=True)))
        self._files = re.compile(rf"(?<!\w)(?:{names})(?!\w)") if names else None
        pieces = [t for t in source_pieces if len(t) >= _SHORTEST_CODE and re.search(r"\W", t)]
        pieces.sort(key=len, reverse=True)
        self._source_pieces = pieces

    def __call__(self, text: str) -> str:
        """Filter a text of the user or a note."""
        text = self._remove_source(text)
        if self.shapes:
            text = _CROSSED_SHAPE.sub(SHAPE, text)
        if self.source:
            text = _THREAD_OF.sub(r"\1", text)
        if self.paths:
            text = _QUOTED.sub(_quotation, text)
        return self._apply_patterns(text)

    def kernel(self, text: str) -> str:
        """Filter the name of a kernel.

        Sizes that a compiler puts into it (``gemm_128x64``) are tiles, not shapes of tensors.
        """
        return self._apply_patterns(self._remove_source(text))

    def node(self, text: str) -> str:
        """Filter the name of a node in a model's graph.

        ``/encoder/MatMul`` is a path in the graph, not in a file system.
        """
        return self._apply_patterns(self._remove_source(text), paths=False)

    def _remove_source(self, text: str) -> str:
        for piece in self._source_pieces:
            if piece in text:
                text = text.replace(piece, SOURCE)
        return text

    def _apply_patterns(self, text: str, *, paths: bool = True) -> str:
        if self.shapes:
            text = _LISTED_SHAPE.sub(SHAPE, text)
        if self.paths and self._files:
            text = self._files.sub(PATH, text)
        if self.paths and paths:
            text = _WORD.sub(_word, _BARE_PATH.sub(PATH, text))
        if self.hosts:
            text = _HOMES.sub(rf"\1{USER}", _HOSTS.sub(HOST, text))
            for name, replacement in _local_names():
                text = name.sub(replacement, text)
        return text


def _quotation(match: re.Match[str]) -> str:
    """Return a quotation, with its contents replaced if they are a path or a file name."""
    mark, text, end = match.groups()
    return f"{mark}{PATH}{end}" if _QUOTED_PATH.search(text) else match[0]


def _word(match: re.Match[str]) -> str:
    """Return a word, replaced if it is the name of a file."""
    word = match[0].rstrip(".-")
    return PATH + match[0][len(word) :] if is_file_name(word) else match[0]


def is_file_name(text: str) -> bool:
    """Whether a text ends like the name of a file.

    Examples
    --------
    >>> is_file_name("my model.onnx"), is_file_name("torch.relu")
    (True, False)
    """
    stem, _, extension = text.rpartition(".")
    return bool(stem.strip(".")) and extension.lower() in _FILE_TYPES


@cache
def _local_names() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Patterns of the machine's and user's names as whole words, with their replacement."""
    host = socket.gethostname()
    names = {host: HOST, host.partition(".")[0]: HOST}
    with contextlib.suppress(OSError, KeyError):  # the user of a container may have no name
        names.setdefault(getpass.getuser(), USER)
    return tuple(
        (re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE), replacement)
        for name, replacement in names.items()
        if len(name) > 1 and name.lower() not in _COMMON_NAMES
    )
