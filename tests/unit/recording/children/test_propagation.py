"""Ways of an order to children: none remains after it has been withdrawn."""

import os
import subprocess
from multiprocessing import spawn

from epprof_nb.recording.children.forks import forks
from epprof_nb.recording.children.order_to_children import VARIABLE
from epprof_nb.recording.children.propagation import give_order, withdraw_order


def prepared():
    return spawn.get_preparation_data("name").keys()


def test_a_withdrawn_order_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    original, popen = spawn.get_preparation_data, subprocess.Popen.__init__
    seen = []
    for _ in range(2):
        give_order(tmp_path / "order.json", in_fork=seen.append)
        assert "epprof_children" in prepared()
        withdraw_order()
        assert spawn.get_preparation_data is original
        assert subprocess.Popen.__init__ is popen
        assert VARIABLE not in os.environ
        assert forks.function is None
    assert not seen


def test_another_replacement_of_the_function_remains(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    give_order(tmp_path / "order.json", in_fork=lambda _: None)
    ours = spawn.get_preparation_data
    monkeypatch.setattr(spawn, "get_preparation_data", lambda name: {**ours(name), "mine": 1})
    withdraw_order()
    assert prepared() >= {"mine", "name"}
    assert "epprof_children" not in prepared()
    monkeypatch.undo()
    withdraw_order()
