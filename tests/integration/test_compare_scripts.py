"""``epprof compare --run`` and ``epprof calibrate``: scripts recorded in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

import epprof_nb
from epprof_nb.cli import main
from epprof_nb.commands.recorded_scripts import Script
from epprof_nb.views.renderers.text import as_text
from epprof_nb.views.view_model import ViewModel

STEPS = """
import sys, time, epprof_nb
for _ in range(12):
    epprof_nb.step()
    with epprof_nb.op("work"):
        time.sleep(float(sys.argv[1]))
print("a line of the script")
"""


@pytest.fixture
def epprof(tmp_path):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "epprof_nb.cli", *arguments],
            cwd=tmp_path,
            env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            check=False,
        )

    (tmp_path / "steps.py").write_text(STEPS)
    return run


@pytest.fixture
def here(monkeypatch, tmp_path):
    """A function that runs a command in this process, which records scripts that only sleep.

    It is for what follows from many recordings; other tests record real scripts.
    """

    def record(script, _path, *, steps=None, detail=()):
        assert steps is None
        assert not detail
        name, seconds = script.arguments
        with epprof_nb.profile() as prof:
            for _ in range(12 if name == "steps.py" else 0):
                epprof_nb.step()
                with epprof_nb.op("work"):
                    time.sleep(float(seconds))
            time.sleep(float(seconds))
        return prof

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(Script, "record", record)
    return lambda *arguments: CliRunner().invoke(main, arguments)


def test_scripts_with_steps_are_recorded_in_turn_and_compared(epprof, here, tmp_path):
    (tmp_path / "kept").mkdir()
    commands = "python steps.py 0.002", "python -u steps.py 0.1"
    result = epprof("compare", "--run", *commands, "--rounds", "2", "--keep", "kept")
    assert result.returncode == 1, result.stdout + result.stderr
    assert result.stdout.startswith("slower\n")
    assert "\na line of the script\n" not in result.stdout + result.stderr
    assert "round 2 of 2" in result.stderr
    kept = sorted((tmp_path / "kept").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    # The second round is in the other order.
    assert [p.name for p in kept] == [f"00{n}.epprof" for n in ("1-1", "1-2", "2-2", "2-1")]
    again = here(
        "compare", "kept/001-1.epprof", "kept/001-2.epprof",
        "--more-old", "kept/002-1.epprof", "--more-new", "kept/002-2.epprof",
    )  # fmt: skip
    assert again.stdout == result.stdout


ENDING_WITH_STEP = """
import time, epprof_nb, numpy as np
from epprof_nb import host
x = host.to_device(np.ones(4))
for _ in range(14):
    with epprof_nb.op("work"):
        host.launch(lambda a: time.sleep(0.001), x, name="kernel")
    epprof_nb.step()
print("done")
"""


def test_what_follows_the_last_step_is_not_compared(epprof, tmp_path):
    (tmp_path / "ending.py").write_text(ENDING_WITH_STEP)
    command = ["compare", "--run", "ending.py", "ending.py", "--rounds", "1", "--keep", "."]
    result = epprof(*command)
    assert "not tested" not in result.stdout, result.stdout + result.stderr
    profiles = [epprof_nb.load(tmp_path / f"001-{side}.epprof") for side in (1, 2)]
    # Step 0, which contains the first round, and the code after the last round are rows, too.
    assert [len(prof.by_repeat()) for prof in profiles] == [15, 15]
    assert "13 steps" in as_text(ViewModel(profiles[0]))
    ops = epprof_nb.compare(*profiles).ops.set_index("name")
    assert ops.loc["work", "measure"] == "device"
    assert ops.loc["work", "verdict"] != "not tested"


@pytest.mark.usefixtures("epprof")
def test_whole_runs_are_the_repeats_of_scripts_without_steps(here, tmp_path):
    (tmp_path / "job.py").touch()
    result = here("compare", "--run", "job.py 0.001", "job.py 0.1", "--rounds", "10")
    assert result.exit_code == 1, result.output
    assert "The runs of both alternated" in result.stdout


def test_a_script_that_fails_is_named_with_its_error(epprof):
    result = epprof("compare", "--run", "steps.py 0", "steps.py x", "--rounds", "1")
    assert result.returncode == 4, result.stdout + result.stderr
    assert "could not convert string to float" in result.stderr
    assert "epprof_nb/" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--run", "steps.py 0", "gone.py"], "the file gone.py does not exist"),
        (["--run", "steps.py 0", "ls -l"], "does not run a Python script"),
        (["--run", "steps.py 0", "/nowhere/python steps.py"], "the interpreter"),
        (["--run", "steps.py 0", "python -m"], "does not run a Python script"),
        (["--run", "steps.py 0", "python 'steps.py"], "No closing quotation"),
        (["--run", "steps.py 0", "steps.py 0", "--more-old", "x.epprof"], "--more-old"),
        (["steps.py", "steps.py", "--keep", "."], "--keep needs --run"),
    ],
)
@pytest.mark.usefixtures("epprof")
def test_what_cannot_run_is_a_usage_error(here, arguments, text):
    result = here("compare", *arguments, "--rounds", "1")
    assert result.exit_code == 2, result.output
    assert text in " ".join(result.stderr.split())


@pytest.mark.usefixtures("epprof")
def test_calibrate_measures_a_script(here, tmp_path):
    result = here("calibrate", "--rounds", "5", "--run", "python steps.py 0.003")
    assert result.exit_code == 0, result.output
    [of_machine] = json.loads((tmp_path / "cache/epprof_nb/spread.json").read_text()).values()
    assert [entry["recordings"] for entry in of_machine.values()] == [5]


def test_calibrate_measures_this_machine(epprof, tmp_path):
    built_in = epprof("calibrate", "--rounds", "5")
    assert built_in.returncode == 0, built_in.stderr
    assert "host device" in built_in.stdout, built_in.stderr
    content = json.loads((tmp_path / "cache/epprof_nb/spread.json").read_text())
    assert [len(entries) for entries in content.values()] == [2]
