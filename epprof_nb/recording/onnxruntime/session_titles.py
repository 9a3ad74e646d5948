"""Names of ONNX Runtime sessions for notes and tables."""

from __future__ import annotations

from pathlib import PurePath

# Names that exporters give to the graph of any model.
_GENERIC_GRAPHS = ("main_graph", "torch_jit", "torch-jit-export", "graph", "g", "main")


def session_title(path: str | None, given: str = "", graph: str = "") -> str:
    """Return a name for a session.

    Parameters
    ----------
    path
        Path of its model, if it is a file.
    given
        Name that the user gave it, or an empty string.
    graph
        Name of the model's graph.
    """
    file = "" if path is None else PurePath(path).name
    name = given or file or ("" if graph in _GENERIC_GRAPHS else graph)
    return name or "An ONNX Runtime session"
