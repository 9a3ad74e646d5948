"""``docs/operators.md`` against the registry of kernels."""

from __future__ import annotations

import importlib.util
import re

import onnxruntime
import pytest

from tests.paths import ROOT


@pytest.mark.release_independent
def test_the_page_is_up_to_date():
    path = ROOT / "tests" / "tools" / "make_operator_docs.py"
    spec = importlib.util.spec_from_file_location("make_operator_docs", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = tool.OUTPUT.read_text(encoding="utf-8")
    release = re.search(r"ONNX Runtime ([\d.]+\d)", text)[1]
    if release != onnxruntime.__version__:
        pytest.skip(f"the page is of ONNX Runtime {release}")
    assert tool.markdown() == text, f"run python {path.relative_to(ROOT)}"
