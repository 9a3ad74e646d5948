"""Include rules between the folders of the native core."""

import re

from tests.paths import ROOT

NATIVE = ROOT / "epprof_nb" / "native"
SOURCES = sorted(p for p in NATIVE.rglob("*") if p.suffix in {".h", ".c", ".cpp"})
MAY_INCLUDE = {
    "analysis": r"analysis/|core/(activity_kind|columns)\.h",
    "core": r"core/",
    "gpu": r"core/(?!api\.h)|gpu/",
    "cupti": r"core/(?!api\.h)|gpu/|cupti/",
    "nvtx": r"core/(?!api\.h)|nvtx/",
    "torch": r"core/(?!api\.h)|nvtx/(?!api\.h)|torch/",
    "ort": r"core/(?!api\.h)|ort/",
    "ep": r"core/(?!api\.h)|ort/(?!api\.h)|ep/",
    "delays": r"core/(?!api\.h)|gpu/|ep/cuda/driver\.h|delays/",
    "stacks": r"core/(?!api\.h)|stacks/",
    "samples": r"core/(?!api\.h)|stacks/(?!api\.h)|samples/",
    "plugin": r"ort/(?!api\.h)|ep/(?!api\.h)|plugin/",
    "python": r"\w+/api\.h$|python/",
}


def test_every_source_is_in_a_folder_with_a_rule():
    assert {p.relative_to(NATIVE).parts[0] for p in SOURCES} == set(MAY_INCLUDE)


def test_includes_stay_in_the_layer_or_below():
    for source in SOURCES:
        allowed = MAY_INCLUDE[source.relative_to(NATIVE).parts[0]]
        text = source.read_text()
        includes = re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.MULTILINE)
        includes += re.findall(
            rf"^\s*#\s*include\s*<((?:{'|'.join(MAY_INCLUDE)})/[^>]+)>", text, re.MULTILINE
        )
        assert [path for path in includes if not (NATIVE / path).exists()] == [], source
        assert [path for path in includes if not re.match(allowed, path)] == [], source
