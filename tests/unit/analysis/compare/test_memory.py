"""Memory of both sides of a comparison, by op."""

import pytest

import epprof_nb
from epprof_nb import host
from epprof_nb.data.schema import MEMORY_BLOCKS
from tests.helpers.memory_blocks import MB, block
from tests.helpers.repeated import MS, repeated
from tests.helpers.tiny import table


def recorded(blocks, **options):
    """Twenty repeats of two ops, with blocks: bytes, begin, end and name of the op."""
    prof = repeated({"load": MS, "model": MS}, recording={"detail": "memory"}, **options)
    ops = dict(zip(prof.ops["name"], prof.ops.index, strict=True))
    rows = [block(size, begin, end, ops.get(name)) for size, begin, end, name in blocks]
    prof.tables["memory_blocks"] = table(MEMORY_BLOCKS, rows)
    return prof


def rows(comparison):
    frame = comparison.memory.drop(columns=["status", "delta_bytes"])
    return {path: tuple(values) for path, *values in frame.itertuples(index=False)}


OLD = [(8 * MB, None, None, None), (4 * MB, 100, 900, "load"), (2 * MB, 200, None, "model")]
NEW = [(8 * MB, None, None, None), (4 * MB, 100, 150, "load"), (6 * MB, 200, None, "model")]


def test_each_op_has_its_bytes_at_the_peak_and_at_the_end():
    result = epprof_nb.compare(recorded(OLD), recorded(NEW, seed=1))
    assert rows(result) == {
        "load": (4 * MB, 0, 0, 0),
        "model": (2 * MB, 6 * MB, 2 * MB, 6 * MB),
    }
    assert result.memory_change == 0
    assert result.memory["delta_bytes"].tolist() == [4 * MB, -4 * MB]
    assert "Memory in use at the peak: 6.29 MB before, 6.29 MB after (0 %)" in repr(result)


def test_memory_from_before_does_not_count():
    before = [(50 * MB, None, None, None), (9 * MB, None, 500, None), *OLD]
    result = epprof_nb.compare(recorded(OLD), recorded(before, seed=1))
    assert result.memory_change == 0
    assert "6.29 MB before, 6.29 MB after (0 %)" in repr(result)
    # The peak is that of what counts.
    grown = [*before, (8 * MB, 950, None, "load")]
    result = epprof_nb.compare(recorded(OLD), recorded(grown, seed=1))
    assert rows(result)["load"] == (4 * MB, 8 * MB, 0, 8 * MB)


def test_several_recordings_count_by_their_median():
    new = [recorded([*OLD, (size, 300, None, "model")], seed=size) for size in (MB, 9 * MB, 3 * MB)]
    result = epprof_nb.compare([recorded(OLD)], new)
    assert rows(result)["model"] == (2 * MB, 5 * MB, 2 * MB, 5 * MB)
    assert result.memory_change == pytest.approx(3 / 6)


def test_memory_that_only_one_side_has():
    result = epprof_nb.compare(recorded([]), recorded(NEW, seed=1))
    assert result.memory_change == float("inf")
    assert "0 B before, 6.29 MB after (new)" in repr(result)
    assert epprof_nb.compare(recorded(NEW), recorded([], seed=1)).memory_change == -1
    nothing = epprof_nb.compare(recorded([]), recorded([], seed=1))
    assert nothing.memory_change == 0
    assert "0 B before, 0 B after (0 %)" in repr(nothing)


def test_recordings_without_memory_say_so():
    result = epprof_nb.compare(recorded(OLD), repeated({"load": MS, "model": MS}, seed=1))
    assert result.memory_change is None
    assert "Memory in use" not in repr(result)
    assert len(result.memory) == 0
    assert "Record all of them with" in repr(result.memory)


def test_a_leak_of_a_program_is_found_by_its_op():
    def run(*, leaks):
        kept = []
        with epprof_nb.profile(detail="memory") as prof:
            for _ in range(4):
                epprof_nb.step()
                with epprof_nb.op("forward"):
                    temporary = host.empty(50_000)
                    if leaks:
                        kept.append(host.empty(10_000))
                del temporary
        return prof

    result = epprof_nb.compare(run(leaks=False), run(leaks=True))
    forward = result.memory.set_index("path").loc["forward"]
    assert forward["peak_before_bytes"] == 200_000
    assert forward["peak_after_bytes"] == 200_000 + 4 * 40_000
    assert forward["steady_after_bytes"] - forward["steady_before_bytes"] == 4 * 40_000
