"""Processes that subprocess starts: they get the order, whatever their environment is."""

import os
import subprocess
import sys

import pytest

from epprof_nb.recording.children.order_to_children import VARIABLE
from epprof_nb.recording.children.replaced_environments import StartedProcesses

CODE = f"import os; print(os.environ.get({VARIABLE!r}), os.environ.get('MINE'))"


@pytest.fixture
def started():
    processes = StartedProcesses()
    processes.watch("/order.json")
    yield processes
    processes.stop()


def output(environment):
    command = [sys.executable, "-bb", "-c", CODE]
    return subprocess.check_output(command, env=environment, text=True).split()


@pytest.mark.parametrize(
    ("environment", "order"),
    [
        ({"MINE": "1"}, "/order.json"),
        ({b"MINE": b"1"}, "/order.json"),
        ({"MINE": b"1"}, "/order.json"),
        ({"MINE": "1", VARIABLE: "/other"}, "/other"),
        ({b"MINE": b"1", VARIABLE.encode(): b"/other"}, "/other"),
    ],
)
def test_an_environment_of_text_or_bytes_gets_the_order(started, environment, order):
    before = dict(environment)
    assert output(environment) == [order, "1"]
    assert environment == before
    assert [process.refused for process in started.known] == [False]


def test_the_environment_of_the_process_as_bytes_gets_the_order(started, monkeypatch):
    monkeypatch.setenv("MINE", "1")
    monkeypatch.delenv(VARIABLE, raising=False)
    assert output(os.environb) == ["/order.json", "1"]
    assert [process.refused for process in started.known] == [False]


def test_an_environment_that_python_refuses_raises_its_error(started):
    with pytest.raises(TypeError, match="expected str"):
        output({1: "2"})
    assert not started.known
