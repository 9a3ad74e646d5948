"""The finding on repeated compilations by JAX: the place, its time, and what is none."""

from __future__ import annotations

from tiny import line, op, profile

from epprof_nb.analysis.index import ProfileIndex
from epprof_nb.analysis.insights import findings

MS = 1_000_000


def stage(op_id, kind, start, end, parent, function="model", source="jax"):
    return op(op_id, f"{source}.{kind}", start * MS, end * MS, parent, op_type=kind, source=source,
              category="framework", args={"function": function})  # fmt: skip


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
        "Line 3 (`z = model(x[:n])`) has JAX compile `model` 4 times; the compilations "
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
    assert finding.text.startswith("`model` has JAX compile `model` 3 times;")


def test_two_compilations_are_no_finding():
    assert found(looped(2)) == []
    assert found(looped(1, ("a", "b", "c", "d"))) == []


def test_compilations_of_others_are_no_finding():
    assert found(looped(4, source="torch")) == []
