"""The layers of the package: imports point down, and not in circles."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "epprof_nb"
FLOORS = (
    ("arrays", "util", "_native"),
    ("data", "core"),
    ("analysis", "formats", "readers", "redaction", "host", "instrument", "ep", "distributed"),
    ("views", "exporters", "recorders", "frameworks"),
    ("capture",),
    ("profiles", "onnxruntime"),
    ("notebook", "testing", "mcp"),
    ("__init__",),
    ("commands",),
    ("cli",),
)
FLOOR_OF = {folder: floor for floor, folders in enumerate(FLOORS) for folder in folders}
FILES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.relative_to(PACKAGE).parts[0] not in ("frontend", "native")
}


def is_annotation_block(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imported(path, *, annotations=True):
    """Yield the modules of the package that a file imports, anywhere in the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
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


def test_imports_point_to_lower_floors_or_stay_in_their_folder():
    wrong = []
    for name, path in FILES.items():
        folder = name.split(".")[0]
        for other in imported(path):
            target = other.split(".")[0]
            if folder != target and FLOOR_OF[target] >= FLOOR_OF[folder]:
                wrong.append(f"{name} imports {other}")
    assert wrong == []


def test_files_do_not_import_each_other_in_circles():
    graph = {name: set(imported(path, annotations=False)) for name, path in FILES.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError
