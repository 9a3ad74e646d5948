"""Imports of the package in tests, benchmarks and tools, also in those that only run on a GPU."""

import ast

from tests.paths import ROOT


def modules_of(path):
    """Yield the modules of the package from which a file imports something."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("epprof_nb."):
            yield node.module


def is_there(module):
    path = ROOT / module.replace(".", "/")
    return any(p.exists() for p in (path.with_suffix(".py"), path.with_suffix(".pyi"), path))


def test_tests_and_benchmarks_import_modules_that_exist():
    files = sorted((ROOT / "tests").rglob("*.py"))
    missing = {f"{p.name}: {m}" for p in files for m in modules_of(p) if not is_there(m)}
    assert missing == set()
