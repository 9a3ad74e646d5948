"""Paths in the documents: each is a file or folder of this repository."""

import re
import subprocess
from fnmatch import filter as matching

import pytest

from tests.paths import ROOT

DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
EXTENSIONS = ("c", "cpp", "h", "ipynb", "json", "md", "py", "pyi", "toml", "ts", "yml")
# Words in back quotes that look like paths of this repository.
EXAMPLES = {
    "commands/<name>.py",
    "cuda.h",
    "*.epprof.json",
    ".json",
    "image/png",
    "layer1/dot_general",
    "/proc/stat",
    "/proc/pressure/cpu",
    "notebooks/05_find_the_bottleneck",
    "notebooks/06_did_it_help",
}


@pytest.fixture(scope="module")
def paths():
    """Files and folders of the checkout, each by its path and by all ends of its path."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("needs a git checkout")
    found = set()
    for line in listed.stdout.splitlines():
        parts = line.split("/")
        for end in range(1, len(parts) + 1):
            found.update("/".join(parts[start:end]) for start in range(end))
    return found


def quoted_paths(text):
    """Return the words in back quotes that have a slash or the extension of a source file."""
    words = {word.rstrip("/") for word in re.findall(r"`([\w./*<>-]+)`", text)}
    return {word for word in words if "/" in word or word.rpartition(".")[2] in EXTENSIONS}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_paths_in_documents_exist(document, paths):
    named = quoted_paths(document.read_text("utf-8")) - EXAMPLES
    assert sorted(name for name in named - paths if not matching(paths, name)) == []


def test_each_topic_is_decided_in_one_file():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    tables = text.partition("## Where is what")[2].partition("### Between Python and C++")[0]
    rows = [line.strip("| ").split(" | ") for line in tables.splitlines() if line.startswith("| ")]
    topics = [topic for topic, *_ in rows if topic != "topic"]
    assert [topic for topic in topics if ";" in topic or topics.count(topic) > 1] == []
    files = [decided for topic, decided, *_ in rows if topic != "topic"]
    roots = (ROOT / "epprof_nb", ROOT)
    known = {file for file in files if any((at / file.strip("`")).exists() for at in roots)}
    assert [file for file in files if file not in known] == []
