"""The table of operators of all providers, and its report."""

from __future__ import annotations

from collections import defaultdict

import pandas as pd
import pytest
from click.testing import CliRunner

from epprof_nb.cli import main
from epprof_nb.commands import parity_report
from epprof_nb.core.errors import KernelError
from epprof_nb.ep import wheel_kernels
from tests.ep.sessions import CPU, OURS


def row(table, op_type, opset, domain=""):
    found = table[
        (table["op_type"] == op_type)
        & (table["domain"] == domain)
        & (table["first_opset"] <= opset)
        & (table["last_opset"].isna() | (table["last_opset"] >= opset))
    ]  # fmt: skip
    assert len(found) == 1
    return found.iloc[0]


def test_each_kernel_of_the_runtime_is_in_the_table(ep):
    from onnxruntime.capi import _pybind_state

    rows = defaultdict(list)  # a search of the table for each kernel would take 3 s
    for found in ep.parity().to_dict("records"):
        rows[found["op_type"], found["domain"]].append(found)
    kernels = _pybind_state.get_all_opkernel_def()
    ours = _pybind_state.get_registered_ep_kernel_defs(OURS)
    assert len(kernels) > 1000
    assert len(ours) > 200
    for kernel in [*kernels, *ours]:
        opset = kernel.version_range[0]
        [found] = [
            one
            for one in rows[kernel.op_name, kernel.domain]
            if one["first_opset"] <= opset
            and (pd.isna(one["last_opset"]) or opset <= one["last_opset"])
        ]
        text = found[kernel.provider]
        for allowed in kernel.type_constraints.values():
            for onnx_type in allowed:
                assert onnx_type.removeprefix("tensor(").removesuffix(")") in text


def test_the_status_says_what_is_missing(ep):
    table = ep.parity()
    cast = row(table, "Cast", 13)
    assert cast["status"] == "types"
    assert "T1: int2, int4, string" in cast["missing"]
    assert "float" not in cast["missing"]
    assert row(table, "MatMul", 13)["status"] == "same"
    missing = row(table, "StringNormalizer", 10)
    assert missing["status"] == "missing"
    assert pd.isna(missing[OURS])
    assert isinstance(missing[CPU], str)
    assert row(table, "BitwiseAnd", 18)["first_opset"] == 18
    # Resize has another type constraint from version 11 on.
    assert row(table, "Resize", 10)["last_opset"] == 10


def test_ranges_of_one_operator_do_not_overlap(ep):
    table = ep.parity()
    for _, rows in table.groupby(["domain", "op_type"]):
        ends = rows["last_opset"].fillna(2**31).astype("int64").tolist()
        assert all(a < b for a, b in zip(ends, rows["first_opset"].tolist()[1:], strict=False))


def test_a_kernel_that_the_user_defines_counts(ep):
    assert row(ep.parity(), "Relu", 14)["status"] == "same"

    @ep.kernel("Relu", types="float32")
    def relu(ctx, x):
        ctx.xp.maximum(x, 0, out=ctx.out(x.shape))

    narrowed = row(ep.parity(), "Relu", 14)
    assert narrowed["status"] == "types"
    assert "double" in narrowed["missing"]


def test_the_limits_are_those_that_sessions_keep_to(ep):
    from epprof_nb.ep.kernel import REGISTRY
    from epprof_nb.ep.known_operators import CHANNELS_LAST, INVALID

    table = ep.parity()
    limited = {
        (k.declaration.domain, k.declaration.op_type)
        for k in REGISTRY._builtin
        if set(k.limits) - {INVALID}
        and k.declaration.domain != CHANNELS_LAST  # no model has these operators
    }
    rows = table[table["limits"] != ""]
    assert set(zip(rows["domain"], rows["op_type"], strict=True)) == limited
    fused = row(table, "FusedConv", 1, "com.microsoft")
    assert fused["limits"].startswith("activation is not one of Clip, ")
    printed = CliRunner().invoke(main, ["ep", "parity"]).output
    reasons = "".join(f"\n      {reason}" for reason in fused["limits"].split("; "))
    assert f"\n  com.microsoft.FusedConv 1+{reasons}\n" in printed


def test_an_unknown_provider_is_refused_with_the_known_ones(ep):
    with pytest.raises(KernelError, match=f"no kernels of NopeExecutionProvider.*{CPU}"):
        ep.parity(["NopeExecutionProvider"])


def test_a_wheel_whose_question_ends_the_process_is_asked_in_another(ep, monkeypatch):
    import onnxruntime

    names = ["TensorrtExecutionProvider", "CUDAExecutionProvider", OURS, CPU]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: names)
    monkeypatch.setattr(wheel_kernels, "_ASK", "import os; os.abort()")
    wheel_kernels._answers.cache_clear()
    try:
        table = ep.parity()
        assert table.attrs["unknown"] == names[:2]
        assert row(table, "StringNormalizer", 10)["status"] == "missing"
        output = CliRunner().invoke(main, ["ep", "parity"]).output
        assert (
            "\nnot known: the kernels of TensorrtExecutionProvider, CUDAExecutionProvider" in output
        )
        assert wheel_kernels.providers_with("Relu", "") == [CPU]
        with pytest.raises(KernelError, match="no kernels of CUDAExecutionProvider"):
            ep.parity(["CUDAExecutionProvider"])
    finally:
        wheel_kernels._answers.cache_clear()
    monkeypatch.undo()
    assert ep.parity().attrs["unknown"] == []


def test_the_command_prints_counts_and_differences():
    done = CliRunner().invoke(main, ["ep", "parity"])
    assert done.exit_code == 0, done.output
    assert f"{OURS} compared with {CPU}" in done.output
    kernels = names(done.output, f"  ai.onnx ({CPU})")
    assert "StringNormalizer 10+" in kernels
    assert "MatMul 1+" not in kernels
    every = CliRunner().invoke(main, ["ep", "parity", "--all"]).output
    assert "MatMul 1+" in names(every, f"  ai.onnx ({CPU})")


def names(report, heading):
    """The operators under a heading, each time it stands in a report."""
    found = []
    lines = iter(report.splitlines())
    for line in lines:
        if line == heading:
            for below in lines:
                if not below.startswith("      "):
                    break
                found += [name.strip() for name in below.rstrip(",").split(",")]
    return found


def test_operators_that_lack_the_same_types_are_listed_together(ep):
    table = ep.parity()
    report = "\n".join(parity_report.describe(table, every=False))
    lacking = names(report, "  string")
    assert {"Concat 4+", "Gather 1+", "Tile 6+"} <= set(lacking)  # ranges that meet are joined
    assert "com.microsoft" not in "".join(lacking)
    lines = report.splitlines()
    first, last = lines.index("types:"), lines.index("missing:")
    listed = [line for line in lines[first + 1 : last] if line.startswith("      ")]
    shown = {name.split()[0] for line in listed for name in line.strip(" ,").split(", ")}
    rows = table[table["status"] == "types"]
    domains = rows["domain"].where(rows["domain"] == "", rows["domain"] + ".")
    assert shown == set(domains + rows["op_type"])


@pytest.mark.parametrize("width", [60, 100])
@pytest.mark.parametrize("every", [False, True])
def test_no_line_of_the_report_is_longer_than_the_terminal(ep, width, every):
    lines = list(parity_report.describe(ep.parity(), every=every, width=width))
    assert len(lines) > 50
    assert max(map(len, lines)) <= width


def test_the_command_prints_csv_and_refuses_unknown_providers():
    done = CliRunner().invoke(main, ["ep", "parity", "--csv"])
    assert done.output.startswith(f"domain,op_type,first_opset,last_opset,{OURS},{CPU}")
    refused = CliRunner().invoke(main, ["ep", "parity", "--provider", "Nope"])
    assert refused.exit_code == 1
    assert "no kernels of Nope" in refused.output
