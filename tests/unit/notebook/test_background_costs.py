"""Costs of recording that a notebook learns in the background, and when."""

import pytest

from epprof_nb.notebook import background_costs
from epprof_nb.notebook.background_costs import learn_missing_costs, missing_costs

FREE, FULL = ({"memory_used_bytes": used << 30, "memory_total_bytes": 80 << 30} for used in (9, 79))


def info(kind="host", gpu=None, **costs):
    state = {"after": {"gpus": [gpu]}} if gpu else {}
    return {"devices": [{"kind": kind}], "gpu": state, "recording_costs": costs}


@pytest.mark.parametrize(
    ("given", "has_torch", "options"),
    [
        (info(), False, []),
        (info(op=300), False, None),
        (info(op=300), True, ["--modules"]),
        (info(op=300, module=2_000), True, None),
        (info("gpu", FREE), True, ["--modules", "--gpu"]),
        (info("gpu", FREE, op=300, launch=700), False, None),
        (info("gpu", FULL, op=300), False, None),
        (info("gpu", None, op=300), False, None),
    ],
    ids=[
        "first",
        "known",
        "PyTorch",
        "modules known",
        "GPU",
        "launches",
        "full GPU",
        "unknown GPU",
    ],
)
def test_what_a_profile_lacks_is_learned(given, has_torch, options):
    assert missing_costs(given, has_torch=has_torch) == options


def test_a_process_learns_once(monkeypatch):
    started = []
    monkeypatch.setattr(background_costs.COSTS, "start", lambda *options: started.append(options))
    learn_missing_costs(info(op=300, module=2_000))
    assert started == []
    learn_missing_costs(info())
    assert len(started) == 1
