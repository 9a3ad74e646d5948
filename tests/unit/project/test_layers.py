"""The layers of the package: imports go down, without cycles."""

import ast
from functools import cache
from graphlib import TopologicalSorter

import pytest

from tests.paths import ROOT

PACKAGE = ROOT / "epprof_nb"
FLOORS = (
    ("_native",),
    ("arrays", "util"),
    ("core", "data"),
    ("analysis", "ep", "host"),
    ("files", "recording"),
    ("onnxruntime", "views"),
    ("profiles",),
    ("jobs",),
    ("mcp", "notebook", "testing"),
    ("__init__",),
    ("commands",),
    ("cli",),
    ("__main__",),
)
"""Folders of the package by layer, lowest first."""

# Subfolders of a folder by layer, lowest first. A file of the folder itself has no layer: it may
# import from subfolders and they from it, as long as files do not import each other in cycles.
SUBFOLDERS = {
    "analysis": (
        ("base",),
        ("peaks",),
        ("frameworks", "onnx", "utilisation"),
        ("critical_path",),
        ("added_time", "experiments", "ranks", "stacks"),
        ("findings",),
        ("memory", "sql"),
        ("steps",),
        ("compare",),
        ("breakdowns", "summary"),
        ("findings.rules", "findings.rules.host_work"),
        ("findings.rules.memory",),
        (
            "findings.rules.compilation",
            "findings.rules.copies",
            "findings.rules.device_work",
            "findings.rules.idle_device",
            "findings.rules.iterations",
            "findings.rules.launches",
            "findings.rules.onnx",
        ),
    ),
    "data": (("result_columns",),),
    "ep": (
        ("graphs", "kernels", "kernels.shared"),
        ("products",),
        ("kernels.cuda",),
        ("kernels.math",),
        ("kernels.images", "kernels.tensors"),
        ("kernels.layers",),
    ),
    "jobs": (("running",), ("dask",)),
    "files": (("epprof", "exporters", "readers", "redaction"), ("dataset",)),
    "recording": (
        ("python_kernels",),
        ("cupti", "host", "onnxruntime", "process_end", "ranges", "statements"),
        ("frameworks", "stacks"),
        ("samples",),
        ("dask", "nvtx", "torch"),
        ("jax", "memory"),
        ("session",),
        ("delays",),
        ("children", "out_of_memory"),
    ),
    "views": (("timeline",), ("queries",), ("plots", "wire"), ("renderers", "widget")),
}
FILES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.relative_to(PACKAGE).parts[0] not in ("frontend", "native")
}


def is_annotation_block(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


@cache
def imported(path, *, annotations=True):
    """Return the modules of the package that a file imports, anywhere in the file."""
    return frozenset(_imported(path, annotations=annotations))


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def _imported(path, *, annotations):
    tree = parsed(path)
    blocks = [] if annotations else [node for node in tree.body if is_annotation_block(node)]
    skipped = {node for block in blocks for node in ast.walk(block)}
    for node in set(ast.walk(tree)) - skipped:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: write absolute imports"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, *parts = name.split(".")
            if package != "epprof_nb":
                continue
            # The longest prefix that is a file; the rest names what it defines.
            prefixes = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
            candidates = (c for p in prefixes for c in (p, f"{p}.__init__") if c in FILES)
            yield next(candidates, "_native" if parts[:1] == ["_native"] else "__init__")


def floor_of(floors):
    return {folder: floor for floor, folders in enumerate(floors) for folder in folders}


def folder_of(name, room):
    """Return the subfolder of `room` that a module is in; "" for a file of `room` itself."""
    return ".".join(name.removeprefix(f"{room}.").split(".")[:-1])


def nested(folder, other):
    return folder == other or folder.startswith(f"{other}.") or other.startswith(f"{folder}.")


def test_imports_point_to_lower_floors_or_stay_in_their_folder():
    floors, wrong = floor_of(FLOORS), []
    for name, path in FILES.items():
        folder = name.split(".")[0]
        for other in imported(path):
            target = other.split(".")[0]
            if folder != target and floors[target] >= floors[folder]:
                wrong.append(f"{name} imports {other}")
    assert wrong == []


@pytest.mark.parametrize("room", SUBFOLDERS)
def test_subfolders_of_a_room_import_from_lower_floors(room):
    floors, wrong = floor_of(SUBFOLDERS[room]), []
    for name, path in FILES.items():
        if not name.startswith(f"{room}.") or not (folder := folder_of(name, room)):
            continue
        for other in imported(path):
            target = folder_of(other, room) if other.startswith(f"{room}.") else ""
            if target and not nested(folder, target) and floors[target] >= floors[folder]:
                wrong.append(f"{name} imports {other}")
    assert wrong == []


def test_sessions_name_cupti_and_onnxruntime_in_one_place_only():
    rooms = {"recording.cupti", "recording.onnxruntime"}
    importing = {
        name
        for name, path in FILES.items()
        if name.startswith("recording.session.")
        and any(".".join(other.split(".")[:2]) in rooms for other in imported(path))
    }
    assert importing == {"recording.session.service"}


def test_views_draw_what_others_have_found():
    importing = {
        f"{name} imports {other}"
        for name, path in FILES.items()
        if name.startswith("views.")
        for other in imported(path)
        if other.startswith("recording.")
    }
    assert importing == set()


def test_every_folder_has_a_floor_and_every_floor_a_folder():
    assert {name.split(".")[0] for name in FILES} == set(floor_of(FLOORS)) - {"_native"}
    for room in {name.split(".")[0] for name in FILES if "." in name}:
        folders = {folder_of(name, room) for name in FILES if name.startswith(f"{room}.")} - {""}
        with_scripts = {folder for folder in folders if folder != "demo_scripts"}
        assert with_scripts == set(floor_of(SUBFOLDERS.get(room, ()))), room


def test_files_do_not_import_each_other_in_circles():
    graph = {name: set(imported(path, annotations=False)) for name, path in FILES.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError
