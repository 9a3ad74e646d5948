"""Files that are no profile and no trace, by their beginning: what they are, and what to do."""

from __future__ import annotations

START_BYTES = 4_096
"""Length of the beginning that decides."""
_GZIP, _ZIP = b"\x1f\x8b", b"PK"
_SPECS = b"speedscope.app/file-format-schema"
_EXPORTS = {
    "to_html": "a web page",
    "to_speedscope": "a profile of speedscope",
    "to_perfetto": "a trace in Perfetto's own format",
}


def why_no_trace(start: bytes) -> str:
    """Return why a file that begins with `start` cannot be read as a trace, and what to do.

    Examples
    --------
    >>> why_no_trace(b"PK")
    'it is a zip archive. If it is a profile (.epprof), load it with epprof_nb.load(path).'
    """
    if start.startswith(_ZIP):
        return (
            "it is a zip archive. If it is a profile (.epprof), load it with epprof_nb.load(path)."
        )
    return _why_no_input(start) or (
        'it is neither a JSON array of events nor a JSON object with "traceEvents". Use a trace '
        "of PyTorch's profiler, a JSON profile of ONNX Runtime or a Chrome trace."
    )


def why_no_profile(start: bytes) -> str:
    """Return why a file that begins with `start`, not as a zip archive, is no profile; see above.

    Examples
    --------
    >>> why_no_profile(b"<!doctype html>").split(",")[0]
    'it is a web page'
    """
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    if reason := _why_no_input(start):
        return reason
    if text.startswith((b"{", b"[", _GZIP)):
        return (
            "it is not a zip archive. If it is a trace, such as one of prof.to_chrome(), read it "
            "with epprof_nb.read_trace(path), or convert it with: epprof convert TRACE NEW.epprof"
        )
    return "it is not a zip archive. Use a file written by prof.save(path)."


def _why_no_input(start: bytes) -> str | None:
    """Return why nothing reads a file, by what is exported like it; None for other files."""
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if text.startswith((b"<!doctype html", b"<html")):
        method = "to_html"
    elif text.startswith(b"{") and _SPECS in text:
        method = "to_speedscope"
    elif start.startswith(b"\n") and any(byte < ord("\t") for byte in start[:64]):
        method = "to_perfetto"  # a field of a protobuf message
    else:
        return None
    return (
        f"it is {_EXPORTS[method]}, as prof.{method}() writes it, which cannot be read back. Save "
        "the profile itself with prof.save(path), and load that file."
    )
