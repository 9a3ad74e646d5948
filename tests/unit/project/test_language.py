"""Words and phrases that the project does not use, in docstrings, comments, messages and docs."""

import ast
import json
import re

import re2

from tests.paths import ROOT

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
    r"\bof yours\b": "your own",
    r"\bplays? no part\b": "is not used",
    r"\bis no (number|percentage|syntax)\b": "is not a",
    r"\bare no valid\b": "are invalid",
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


def named(path):
    return str(path.relative_to(ROOT))


def test_text_uses_standard_terms():
    found = {}
    any_of_them = re2.compile("(?i)" + "|".join(AVOID))  # in one pass
    for path in [*PYTHON, *NATIVE, *VIEWER, *DOCS, *NOTEBOOKS]:
        text = re.sub(r"\s*\n\s*(#|//|\*)?\s*", " ", prose(path))
        if not any_of_them.search(text):
            continue
        for pattern, instead in AVOID.items():
            for match in re.finditer(pattern, text, re.IGNORECASE):
                found.setdefault(named(path), []).append(f"{match[0]!r}: write {instead!r}")
    assert found == {}


def test_docstrings_start_with_a_noun_phrase_or_an_imperative():
    found = {}
    for path in DOCUMENTED:
        source = path.read_text(encoding="utf-8")
        if not re.search(rf"[\"'](\\\n)?{OPENINGS.pattern}", source):
            continue
        # Docstrings of attributes, too, which no function of `ast` returns.
        for node in ast.walk(ast.parse(source)):
            text = node.value.value if _is_constant(node) else None
            if isinstance(text, str) and OPENINGS.match(text):
                found.setdefault(named(path), []).append(text)
    assert found == {}


def _is_constant(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def test_comments_of_the_viewer_start_with_a_noun_phrase_or_an_imperative():
    opening = re.compile(r"/\*\* ?(?:What|Where|Which|Whatever)\b.*")
    found = {named(path): opening.findall(path.read_text("utf-8")) for path in VIEWER}
    assert {name: texts for name, texts in found.items() if texts} == {}
