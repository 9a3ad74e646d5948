"""The markers are registered when TorchDynamo is imported, so that it compiles marked functions."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from types import CodeType

import pytest

from epprof_nb.recording.statements.instrument_cell import instrument
from epprof_nb.recording.statements.markers import BODY, LINE, install_markers
from epprof_nb.recording.statements.statement_registry import Cell

DYNAMO = """
substituted = []
def substitute_in_graph(function, *, skip_signature_check):
    assert skip_signature_check
    def decorate(replacement):
        result = replacement(3)
        if hasattr(result, "__enter__"):
            with result:
                pass
        substituted.append(function)
    return decorate
"""


def in_a_process(code, path):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={"PYTHONPATH": f"{path}:{':'.join(sys.path)}"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.parametrize("first", ["import torch._dynamo", "pass"])
@pytest.mark.parametrize("module", [DYNAMO, "substituted = None"], ids=["new", "old"])
def test_told_whenever_it_is_imported(tmp_path, first, module):
    package = tmp_path / "torch" / "_dynamo"
    package.mkdir(parents=True)
    (tmp_path / "torch" / "__init__.py").touch()
    (package / "__init__.py").write_text(module)
    code = f"""
        import sys
        {first}
        from epprof_nb.recording.statements.markers import MARKERS, install_markers
        install_markers({{}})
        install_markers({{}})
        import torch._dynamo as d
        assert d.substituted in (None, [*MARKERS.values()])
        assert type(d.__loader__).__name__ == type(d.__spec__.loader).__name__ == "SourceFileLoader"
        assert "torch._dynamo" not in [getattr(f, "name", None) for f in sys.meta_path]
        print("ok")
        """
    assert in_a_process(code, tmp_path) == "ok\n"


def test_torch_is_not_imported_for_it(tmp_path):
    code = """
        import sys
        from epprof_nb.recording.statements.markers import install_markers
        install_markers({})
        print("torch" in sys.modules)
        """
    assert in_a_process(code, tmp_path) == "False\n"


SOURCES = {
    "function": "def f(x):\n    y = x + 1\n    return y * 2\n",
    "nested blocks": """
def f(x):
    for i in range(2):
        if i:
            continue
        with torch.no_grad():
            x = x + 1
    return helper(x)
def helper(x):
    y = x * 2
    return y
""",
    "module": """
class Model(torch.nn.Module):
    def forward(self, x):
        y = x + 1
        return y * 2
f = Model()
""",
    "generator": """
def values(x):
    for i in range(2):
        yield x + i
def f(x):
    y = x
    for value in values(x):
        y = y + value
    return y
""",
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_marked_functions_compile_whole(source):
    torch = pytest.importorskip("torch")
    if not hasattr(torch.compiler, "substitute_in_graph"):
        pytest.skip("torch before 2.6")
    tree = ast.parse(source)
    tree.body = instrument(tree.body, Cell("In[1]", source))
    namespace: dict = {"torch": torch}
    install_markers(namespace)
    code = compile(tree, "<cell>", "exec")
    assert {BODY, LINE} <= names_in(code)
    exec(code, namespace)
    torch._dynamo.reset()
    compiled = torch.compile(namespace["f"], backend="eager", fullgraph=True)
    assert compiled(torch.ones(2)).tolist() == [4.0, 4.0]


def names_in(code):
    inner = (names_in(c) for c in code.co_consts if isinstance(c, CodeType))
    return set(code.co_names).union(*inner)
