"""Operators of a torch with CUDA, whose messages come through NVTX.

A library gives torch for the CPU the NVTX observer of a build with CUDA.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.paths import ROOT

torch = pytest.importorskip("torch")

CORE = ROOT / "epprof_nb" / "native"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    spec = importlib.util.find_spec("nvidia.nvtx") if importlib.util.find_spec("nvidia") else None
    nvtx = (
        [Path(folder) / "include" for folder in spec.submodule_search_locations or ()]
        if spec
        else []
    )
    if not nvtx or shutil.which("g++") is None:
        pytest.skip("needs the headers of nvidia-nvtx-cu12, and g++")
    root = Path(torch.__file__).parent
    output = tmp_path_factory.mktemp("stubs") / "stubs.so"
    subprocess.run(
        [
            "g++", "-std=c++20", "-shared", "-fPIC", f"-I{CORE}", f"-I{nvtx[0]}",
            f"-I{root / 'include'}",
            Path(__file__).parent / "native" / "nvtx_stubs.cpp", "-o", output,
            f"-L{root / 'lib'}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{root / 'lib'}", "-ldl",
        ],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return output


def in_a_process(library, code):
    """Run code with the library and a function that describes operators; return what it prints."""
    head = f"""
        import ctypes, gc, json
        import epprof_nb, torch
        from torch import nn

        gc.disable()

        library = ctypes.CDLL({str(library)!r})
        model = nn.Sequential(nn.Linear(4, 8), nn.GELU())
        values = torch.ones(2, 4, requires_grad=True)

        def step():
            model(values).square().sum().backward()

        def operators(prof):
            ops = prof.ops
            parents = ops["name"].reindex(ops["parent_op_id"]).astype(object).tolist()
            kept = (ops["category"] == "operator").tolist()
            columns = zip(
                ops["name"], ops["op_type"], ops["input_shapes"].astype(object), parents, kept,
                strict=True,
            )
            return [row[:4] for row in columns if row[4]]
    """
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path)}
    environment.pop("NVTX_INJECTION64_PATH", None)
    done = subprocess.run(  # noqa: PLW1510 - the assertion shows its errors
        [sys.executable, "-c", textwrap.dedent(head) + textwrap.dedent(code)],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def results(library):
    """Whether the interface is that of the headers, and what profiles in one process recorded."""
    return in_a_process(library, """
        results = {"interface": library.same_interface() & 1}
        step()
        with epprof_nb.profile(detail="shapes") as plain:
            step()
        library.use_nvtx()
        torch.backends.cuda.is_built = lambda: True
        with epprof_nb.profile(detail="shapes") as prof:
            step()
        results["operators"] = operators(plain), operators(prof), prof.info["notes"]

        with epprof_nb.profile(detail="operators") as prof:
            library.push(b"mine, seq = 3")
            torch.exp(values)
            library.pop()
        results["ranges"] = prof.ops["name"].tolist(), prof.ops["op_type"].tolist()

        with epprof_nb.profile() as prof:
            torch.sin(values)
        results["no operators"] = prof.ops["name"].tolist()

        with epprof_nb.profile(detail="operators", frameworks=["torch"]) as prof:
            with torch.no_grad():
                library.push(b"mine")
                torch.exp(values)
                library.pop()
                torch.sin(values)
        results["torch only"] = prof.ops["name"].tolist()
        print(json.dumps(results))
    """)  # fmt: skip


def test_the_interface_is_that_of_the_headers(results):
    assert results["interface"]


def test_operators_are_those_of_a_build_without_cuda(results):
    plain, through_nvtx, notes = results["operators"]
    assert len(plain) > 50
    assert through_nvtx == plain
    assert notes == []


def test_ranges_of_the_user_stay_ranges(results):
    names, types = results["ranges"]
    assert names == ["mine, seq = 3", "aten::exp"]
    assert types == ["range", "operator"]


def test_other_ranges_are_left_out_without_nvtx(results):
    assert results["torch only"] == ["aten::exp", "aten::sin"]


def test_operators_without_a_recording_are_none(results):
    assert results["no operators"] == []


def test_a_torch_that_asked_too_early_is_named_in_a_note(library):
    names, notes = in_a_process(library, """
        import os
        os.environ["NVTX_INJECTION64_PATH"] = ""
        library.use_nvtx()
        library.push(b"first call of NVTX")
        torch.backends.cuda.is_built = lambda: True
        with epprof_nb.profile(detail="operators") as prof:
            torch.exp(values)
        print(json.dumps([prof.ops["name"].tolist(), prof.info["notes"]]))
    """)  # fmt: skip
    assert names == []
    assert "torch has called NVTX before epprof_nb was imported" in notes[0]
