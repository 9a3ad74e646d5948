"""Words and phrases that the project does not use, in docstrings, comments, messages and docs."""

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Phrase -> what to write instead.
AVOID = {
    r"\b(one|a) (row|file|record|launch|line) an? \w": "per",
    r"\bnobody's\b": "unattributed",
    r"\blooking on\b": "profiler overhead",
    r"\bprofiling cost\b": "profiler overhead",
    r"\boutstanding\b": "queued, pending",
    r"\b(is|are|was|were) lit\b|\blit up\b|\blights? up\b": "highlighted",
    r"\bmend(s|ed)?\b": "fix",
    r"\bwhat is asked for\b|\bis asked for\b": "requested, on demand",
    r"\b(is|are) told\b": "reported, notified",
    r"\bso many\b": "the limit's name",
    r"\bstands? (here|there)\b": "is",
    r"\brecords lost\b|\blost records\b|\blosses with\b": "dropped records",
    r"\bstretch(ed|es)? (its|the|these|each) runs?\b": "slowed",
    r"\b(copies|copy) and sets?\b|\b(copies|copy),? or sets?\b": "memset",
    r"\bonce more\b": "again",
}
OPENINGS = re.compile(r"(What|Where|Which|Whatever|Whichever)\b")
PYTHON = [
    path
    for folder in ("epprof_nb", "tests/benchmarks", "tests/tools")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "node_modules" not in path.parts
]
DOCUMENTED = [
    path
    for folder in ("epprof_nb", "tests")
    for path in sorted((ROOT / folder).rglob("*.py*"))
    if path.suffix in (".py", ".pyi") and "node_modules" not in path.parts
]
NATIVE = sorted(
    p for p in (ROOT / "epprof_nb/native").rglob("*") if p.suffix in (".h", ".c", ".cpp")
)
VIEWER = sorted((ROOT / "epprof_nb/frontend/src").rglob("*.ts"))
DOCS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *ROOT.glob("docs/*.md"),
]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def prose(path):
    """The text of a file that people read: comments, docstrings, messages; all of a document."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return text


@pytest.mark.parametrize(
    "path", [*PYTHON, *NATIVE, *VIEWER, *DOCS, *NOTEBOOKS], ids=lambda p: str(p.relative_to(ROOT))
)
def test_text_uses_standard_terms(path):
    text = re.sub(r"\s*\n\s*(#|//|\*)?\s*", " ", prose(path))
    found = [
        f"{match[0]!r}: write {instead!r}"
        for pattern, instead in AVOID.items()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]
    assert not found


@pytest.mark.parametrize("path", DOCUMENTED, ids=lambda p: str(p.relative_to(ROOT)))
def test_docstrings_start_with_a_noun_phrase_or_an_imperative(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    # Those of attributes, too, which no function of `ast` returns.
    texts = [node.value.value for node in ast.walk(tree)
             if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]  # fmt: skip
    assert not [text for text in texts if isinstance(text, str) and OPENINGS.match(text)]


@pytest.mark.parametrize("path", VIEWER, ids=lambda p: str(p.relative_to(ROOT)))
def test_comments_of_the_viewer_start_with_a_noun_phrase_or_an_imperative(path):
    openings = re.findall(r"/\*\* ?(?:What|Where|Which|Whatever)\b.*", path.read_text("utf-8"))
    assert not openings
