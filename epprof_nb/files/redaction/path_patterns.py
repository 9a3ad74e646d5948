"""Patterns of paths and names of files in text, and their replacement.

Paths cannot be recognised with certainty. Ambiguous text is treated as a path, because a redacted
formula does less harm than a leaked directory name.
"""

from __future__ import annotations

import re

PATH = "(path)"

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


def without_quoted_paths(text: str) -> str:
    """Replace the contents of quotations that are paths or names of files."""
    return _QUOTED.sub(_quotation, text)


def without_bare_paths(text: str) -> str:
    """Replace paths and names of files that are not quoted."""
    return _WORD.sub(_word, _BARE_PATH.sub(PATH, text))


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
