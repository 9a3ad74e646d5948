"""Steps in a `with epprof_nb.profile()` block, and their comparison."""

import gc

import numpy as np

import epprof_nb
from epprof_nb import host
from epprof_nb.recording.session import marked_steps


def listeners():
    return sum(reference() is not None for reference in marked_steps._listeners)


def block(count):
    with epprof_nb.profile() as prof:
        with epprof_nb.op("prepare"):
            pass
        for _ in range(count):
            epprof_nb.step()
            for _ in range(3):
                with epprof_nb.op("layer"):
                    pass
    return prof


def test_a_block_with_steps_is_compared_by_its_steps():
    old, new = block(20), block(20)
    assert old.info["first_step"] == 0
    assert len(old.info["repeats"]) == 21  # with what comes before the first call
    assert old.ops["repeat"].tolist() == [0] + [step for step in range(1, 21) for _ in range(3)]
    result = epprof_nb.compare(old, new)
    assert result.verdict != "cannot be compared", result.reason
    assert "per repeat" in result.reason
    assert result.ops.set_index("path").loc["layer", "verdict"] != "not tested"


def test_a_block_without_steps_has_no_repeats():
    prof = block(0)
    assert not prof.info.get("repeats")
    assert "first_step" not in prof.info
    reason = epprof_nb.compare(prof, block(0)).reason
    assert "`with` block, call `epprof_nb.step()`" in reason


def test_steps_count_for_nested_blocks_and_not_after_them():
    known = listeners()
    with epprof_nb.profile() as outer:
        epprof_nb.step()
        with epprof_nb.profile() as inner:
            epprof_nb.step()
            epprof_nb.step()
        epprof_nb.step()
    epprof_nb.step()
    assert [len(prof.info["repeats"]) for prof in (outer, inner)] == [5, 3]
    assert listeners() == known


def test_all_listeners_hear_a_step_at_which_one_leaves():
    class Once:
        heard = 0

        def listen(self):
            self.heard += 1
            marked_steps.off_step(self.listen)

    both = Once(), Once()
    for one in both:
        marked_steps.on_step(one.listen)
    for _ in range(2):
        epprof_nb.step()
        assert [one.heard for one in both] == [1, 1]


def test_an_abandoned_block_ends_in_spite_of_its_steps():
    known = listeners()
    manager = epprof_nb.profile()
    manager.__enter__()
    epprof_nb.step()
    del manager
    gc.collect()
    epprof_nb.step()
    assert listeners() == known


def test_what_profiling_added_is_in_the_info_once_the_block_has_ended(monkeypatch):
    x = host.to_device(np.ones(16, "f4"))
    with epprof_nb.profile() as prof:
        for _ in range(200):
            with epprof_nb.op("a"):
                host.launch(np.negative, x, x)
        host.synchronize()
        assert "added_ns" not in prof.info
    added = prof.info["added_ns"]
    assert added["estimated"]
    assert 0 < added["total"] <= prof.wall_ns
    assert {"ops", "launches"} <= added["parts"].keys()

    with epprof_nb.profile() as prof:
        pass
    assert prof.info["added_ns"] == {"reason": "what recording takes was not timed"}

    def fail(_):
        raise RuntimeError("damaged")

    monkeypatch.setattr("epprof_nb.analysis.added_time.estimated_time.estimated_time", fail)
    with epprof_nb.profile() as prof, epprof_nb.op("b"):
        pass
    assert prof.ops["name"].tolist() == ["b"]
    assert "added_ns" not in prof.info
