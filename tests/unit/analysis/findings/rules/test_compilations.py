"""Findings on compilations by JAX and torch.compile: place, time, remedy, and false alarms."""

from __future__ import annotations

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings.ranking import findings
from tests.helpers.tiny import line, op, profile

MS = 1_000_000


def stage(op_id, kind, start, end, parent, function="model", source="jax", **args):
    return op(op_id, f"{source}.{kind}", start * MS, end * MS, parent, op_type=kind, source=source,
              category="framework", args={"function": function} | args)  # fmt: skip


def call(op_id, start, end, parent, name="model"):
    return op(op_id, name, start * MS, end * MS, parent, op_type="jit", source="jax",
              category="framework")  # fmt: skip


def looped(times, functions=("model",), lines=True, source="jax"):
    """Calls of 10 ms: 1 ms of tracing, 2 ms of lowering and 6 ms of compilation."""
    rows, at, number = [], 0, 1
    for _ in range(times):
        for name in functions:
            if lines:
                rows.append(line(number, 3, at * MS, (at + 10) * MS))
            rows += [
                call(number + 1, at, at + 10, number if lines else -1, name),
                stage(number + 2, "trace", at, at + 1, number + 1, name, source),
                stage(number + 3, "lower", at + 1, at + 3, number + 1, name, source),
                stage(number + 4, "compile", at + 3, at + 9, number + 1, name, source),
            ]
            number, at = number + 5, at + 10
    return profile(
        rows, info={"wall_ns": at * MS}, sources={"In[1]": "x = 1\ny = 2\nz = model(x[:n])\n"}
    )


def found(prof):
    kinds = findings(ProfileIndex(prof), limit=None)
    return [finding for finding in kinds if finding.kind == "compilation"]


def test_a_function_that_is_compiled_again_and_again_is_found():
    prof = looped(4)
    (finding,) = found(prof)
    assert finding.text == (
        "Line 3 (`z = model(x[:n])`) makes JAX compile `model` 4 times; the compilations "
        "after the first take 27.0 ms."
    )
    assert finding.gain_ns == 3 * 9 * MS
    ops = prof.tables["ops"]
    evidence = finding.evidence_rows(prof)
    assert len(evidence) == 9
    assert set(ops.names("op_type").take(evidence).to_list()) == {"trace", "lower", "compile"}
    assert finding.op_id in ops["op_id"][evidence]


def test_other_functions_of_the_place_are_counted():
    (finding,) = found(looped(3, ("model", "pad")))
    assert "`model` 3 times, and 1 other function;" in finding.text
    assert finding.gain_ns == 4 * 9 * MS


def test_without_statements_the_place_is_the_call():
    (finding,) = found(looped(3, lines=False))
    assert finding.text.startswith("`model` makes JAX compile `model` 3 times;")


def test_two_compilations_are_no_finding():
    assert found(looped(2)) == []
    assert found(looped(1, ("a", "b", "c", "d"))) == []


def test_compilations_of_others_are_no_finding():
    assert found(looped(4, source="tvm")) == []


def compiled_by_torch(*compilations):
    """Calls of a module in which torch.compile takes 9 of 10 ms: id and reason of each."""
    rows = []
    for n, (number, reason) in enumerate(compilations):
        start, given = n * 10, {"recompile_reason": reason} if reason else {}
        rows += [
            line(3 * n + 1, 3, start * MS, (start + 10) * MS),
            op(3 * n + 2, "net", start * MS, (start + 10) * MS, 3 * n + 1, op_type="module",
               source="torch", category="framework"),
            stage(3 * n + 3, "compile", start, start + 9, 3 * n + 2, "forward", "torch",
                  compile_id=number, **given),
        ]  # fmt: skip
    return profile(
        rows,
        info={"wall_ns": 10 * len(compilations) * MS},
        sources={"In[1]": "x = 1\ny = 2\nz = net(x[:n])\n"},
    )


def test_recompilations_by_torch_have_their_reason_and_a_remedy():
    reason = "0/0: tensor 'x' size mismatch at index 1. expected 65, actual 33"
    prof = compiled_by_torch(("0/1", reason), ("0/2", None))
    (finding,) = found(prof)
    assert finding.text == (
        "Line 3 (`z = net(x[:n])`) makes torch.compile compile code again: 2 compilations, 18.0 "
        "ms. "
        f"The reason of the longest one: {reason}."
    )
    assert finding.gain_ns == 18 * MS
    assert "dynamic=True" in finding.remedy
    assert "mark_dynamic" in finding.remedy
    assert finding.evidence_rows(prof).tolist() == [2, 5]
    (other,) = found(compiled_by_torch(("1/3", "1/2: tensor 'x' requires_grad mismatch")))
    assert "TORCH_LOGS=recompiles" in other.remedy
    assert "The reason: 1/2" in other.text


def test_first_compilations_by_torch_call_for_a_warm_up():
    (finding,) = found(compiled_by_torch(("0/0", None), ("1/0", None)))
    assert "for the first time, 18.0 ms." in finding.text
    assert finding.remedy.startswith("Warm up before the profile")


def compiled_for(*calls):
    rows = []
    for n, given in enumerate(calls):
        rows.append(line(2 * n + 1, 3, n * 10 * MS, (n * 10 + 10) * MS))
        rows.append(
            stage(
                2 * n + 2,
                "compile",
                n * 10,
                n * 10 + 9,
                2 * n + 1,
                **({"arguments": given} if given else {}),
            )
        )
    (finding,) = found(profile(rows, info={"wall_ns": 10 * len(calls) * MS}))
    return finding


def test_the_arguments_that_differ_are_named():
    calls = [{"x": f"float32[{n},4]", "w": "float32[4,4]"} for n in (32, 31, 30, 29)]
    finding = compiled_for(*calls)
    assert finding.text.endswith(
        " The arguments differ: `x` is float32[32,4], float32[31,4], float32[30,4] and 1 more."
    )
    assert "pad arrays" in finding.remedy
    calls[0] |= {"a": 1, "b": 2, "w": "int32[4,4]"}
    assert compiled_for(*calls).text.endswith(
        "; `w` is int32[4,4], float32[4,4]; 2 other arguments change."
    )


def test_new_functions_and_unknown_arguments_have_other_remedies():
    finding = compiled_for(*[{"x": "float32[2]"}] * 3)
    assert finding.text.endswith(" Each time, the arguments have the same shapes and dtypes.")
    assert "once, outside of loops" in finding.remedy
    assert "pad arrays" not in finding.remedy
    unknown = compiled_for(None, {"x": "float32[2]"}, {"x": "float32[3]"})
    assert unknown.text.endswith(" take 18.0 ms.")
    assert "the same shapes, dtypes and static arguments, and call jax.jit" in unknown.remedy
