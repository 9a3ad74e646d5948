"""Imports of the package in tests, benchmarks and tools, also in those that only run on a GPU."""

import re

from tests.paths import ROOT

IMPORT = re.compile(r"^\s*from (epprof_nb\.[\w.]+) import", re.MULTILINE)
"""Also one of a program that a test starts."""


def is_there(module):
    path = ROOT / module.replace(".", "/")
    return any(p.exists() for p in (path.with_suffix(".py"), path.with_suffix(".pyi"), path))


def test_tests_and_benchmarks_import_modules_that_exist():
    files = sorted((ROOT / "tests").rglob("*.py"))
    found = {(p.name, module) for p in files for module in IMPORT.findall(p.read_text("utf-8"))}
    assert len(found) > 1000
    assert {f"{name}: {module}" for name, module in found if not is_there(module)} == set()
