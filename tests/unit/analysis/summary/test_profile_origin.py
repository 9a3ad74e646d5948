"""Titles of profiles, and the line that says where they were made."""

import datetime as dt
import re

import pytest

import epprof_nb
from epprof_nb.analysis.summary.profile_origin import made_on, title_of
from epprof_nb.views.renderers.html import page_html
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.wire.headers import first_view_header
from tests.helpers.tiny import kernel, profile

STARTED = int(dt.datetime(2026, 11, 22, 5, 20, tzinfo=dt.UTC).timestamp() * 1e9)
INFO = {
    "devices": [{"device_id": i, "name": "NVIDIA H200", "kind": "gpu"} for i in (0, 1)],
    "gpu": {"before": {"driver_version": "570.86.15"}},
    "versions": {
        "epprof_nb": "0.1.0",
        "cupti": "26",
        "torch": "2.9.0",
        "jax": "0.10.2",
        "python": "3.12.4",
    },
    "started_at_epoch_ns": STARTED,
}


def test_the_title_has_the_cell_the_devices_and_the_day():
    prof = profile(activities=[kernel(0, 5)], info=INFO, sources={"In[3]": "f()"})
    assert title_of(prof) == "In[3] · 2 \N{MULTIPLICATION SIGN} NVIDIA H200 · 2026-11-22"
    assert f"<title>{title_of(prof)}</title>" in page_html(ViewModel(prof))


def test_the_title_of_a_script_has_its_name_only():
    sources = {"train.py": "step()", "/home/me/ops.py": "def step(): ..."}
    prof = profile(info={"cell": "train.py", "script": "train.py"}, sources=sources)
    assert title_of(prof) == "train.py"


def test_the_line_has_devices_driver_versions_and_date():
    assert made_on(INFO) == (
        "2 \N{MULTIPLICATION SIGN} NVIDIA H200 · driver 570.86.15 · CUPTI 26 · PyTorch 2.9.0 · "
        "JAX 0.10.2 · Python 3.12.4 · epprof_nb 0.1.0 · 2026-11-22 05:20 UTC"
    )


def test_live_views_have_the_line_at_once():
    with epprof_nb.profile() as prof:
        pass
    line = first_view_header(ViewModel(prof))["made_on"]
    # No work ran on the host device.
    assert not line.startswith("host device")
    assert re.match(r"[^·]+, \d+ cores? · ", line)
    shown = {"recorded": {"shown": {"kernel": 1}}}
    named = {
        "devices": [{"device_id": 1000, "kind": "host", "name": "host device (Xeon, 2 cores)"}]
    }
    assert made_on(named) == "Xeon, 2 cores"
    assert made_on(named | shown) == "host device (Xeon, 2 cores)"
    assert line.endswith(" UTC")


@pytest.mark.parametrize(
    "info",
    [
        {},
        {"devices": 3, "gpu": [], "versions": None, "started_at_epoch_ns": "now"},
        {"started_at_epoch_ns": 2**70, "devices": [{"name": "x"}], "gpu": {"before": 4}},
        {"started_at_epoch_ns": -1},
    ],
)
def test_a_profile_that_does_not_know_says_nothing(info):
    assert made_on(info) == ""
    assert title_of(profile(info=info)) == "Profile"


def test_long_names_are_shortened():
    info = {"devices": [{"device_id": 0, "name": "x" * 10_000}], "script": "y" * 10_000}
    assert len(title_of(profile(info=info))) < 250
    assert len(made_on(info)) < 250
