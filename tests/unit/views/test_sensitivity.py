"""The result of an experiment as text, HTML and a picture."""

import base64
import io

import pandas as pd
import pytest
from PIL import Image

import epprof_nb
from epprof_nb.analysis.base.index import index_of
from epprof_nb.analysis.experiments import sentences
from epprof_nb.analysis.experiments.sensitivity import sensitivities
from epprof_nb.util.format import duration
from epprof_nb.views.sensitivity import SensitivityView
from tests.helpers.simulated.step import Machine

MS = 1_000_000


def host_bound(machine):
    for _ in range(10):
        with machine.op("prepare"):
            machine.host(int(0.7 * MS))
        with machine.op("attention"):
            machine.launch(int(0.3 * MS))
    machine.synchronize()


@pytest.fixture(scope="module")
def prof():
    return Machine(scatter=20_000).experiment(host_bound)[0]


def test_a_line_says_what_an_op_wins(prof):
    headline, prepare, attention = SensitivityView(prof).as_text().splitlines()
    assert headline.startswith("Experiment: 40 repeats with delays. Repeats scatter by")
    assert prepare.split()[0] == "prepare"
    assert "host 1.0" in prepare or "host 0.9" in prepare
    assert "of 7.32 ms would be saved (" in prepare
    assert attention.split()[0] == "attention"
    assert "41 % of the GPU" in attention
    assert "a faster `attention` wins next to nothing: the host is the limit" not in prepare


def test_an_op_that_wins_nothing_is_named_with_the_limit():
    def step(machine):
        with machine.op("hidden"):
            machine.launch(3 * MS, 8)
        with machine.op("prepare"):
            machine.host(8 * MS)

    prof, _ = Machine(scatter=20_000).experiment(step)
    text = SensitivityView(prof).as_text()
    assert "a faster `hidden` wins next to nothing: the host is the limit" in text


def test_a_wide_range_comes_before_any_value(prof):
    """As for a loop that polls: the replay may keep its waits, or not."""
    row = next(row for row in sensitivities(index_of(prof)) if row.op.name == "prepare")
    wide = row._replace(saving=row.saving._replace(ns=MS // 2, low=0.0, high=7.0 * MS))
    text = sentences.op_sentence(wide, "GPU").win
    assert text.startswith("without its time, 0 s to 7.00 ms of 7.32 ms would be saved (")
    assert text.endswith(" if the wall time follows it as far as measured)")
    assert float(text.split("(")[1].split()[0]) > 6  # its slope is about 1, and its time 7 ms


def test_next_to_nothing_is_not_said_beside_a_slope():
    """Without the first of two chains of nearly one length, the second is the limit."""

    def step(machine):
        with machine.op("first"):
            machine.launch(8 * MS)
        with machine.op("second"):
            machine.launch(int(7.9 * MS), 8)
        machine.synchronize()
        machine.synchronize(8)

    text = SensitivityView(Machine(scatter=20_000).experiment(step)[0]).as_text()
    (line,) = [line for line in text.splitlines() if line.startswith("  first")]
    assert "the wall time follows `first`, but without it, other work would soon take" in line
    assert "next to nothing" not in line


def test_an_interval_without_an_end_agrees_with_nothing():
    prof = Machine(scatter=20_000).experiment(host_bound)[0]
    for part in prof.info["experiment"]["rounds"]:
        # Some delays did not happen, and others without an order did.
        part["delay_ns"] = [
            [number % 3 * 100_000 for _ in row] for number, row in enumerate(part["delay_ns"])
        ]
    found = prof.sensitivity()
    widths = found[["device_sensitivity_high", "host_sensitivity_high"]].max(axis=1)
    assert (widths == float("inf")).any()
    assert found["agrees"][widths == float("inf")].isna().all()
    text = SensitivityView(prof).as_text()
    assert "inf" not in text
    assert "uncertain" in text


def test_the_picture_has_a_legend(prof):
    page = SensitivityView(prof).as_html()
    for text in ("replayed", "95 % interval", "next to nothing in the replay",
                 "replay alone, or uncertain"):  # fmt: skip
        assert f">{text}<" in page


def test_what_only_the_replay_says_has_its_interval_and_a_mark():
    def step(machine):
        for number in range(9):
            with machine.op(f"op {number}"):
                machine.host((10 - number) * MS)

    prof, _ = Machine(scatter=20_000).experiment(step, repeats=16)
    found = prof.sensitivity().set_index("name")
    unknown = found.index[found["host_sensitivity"].isna()]
    assert 0 < len(unknown) < len(found)
    assert (found.loc[unknown, "note"] == "not measured: the repeats are too few for it").all()
    view, row = SensitivityView(prof), found.loc[unknown[0]]
    low, high = (duration(row[f"saving_{end}_ns"]) for end in ("low", "high"))
    line = f"by the replay alone, {duration(row['saving_if_free_ns'])} of 54.0 ms would be saved"
    assert f"{line} ({low} to {high})" in view.as_text()
    page = view.as_html()
    assert page.count(", replay alone</title>") == 2 * len(unknown)  # of names and bars
    thin = page.count('height="2"')
    assert thin == 1 + len(unknown)  # one is in the legend
    assert page.count('height="10"') == 2 + len(found) - len(unknown)


def test_uncertain_savings_do_not_look_like_measured_ones(prof, monkeypatch):
    monkeypatch.setattr(sentences, "MAX_WIDTH", 0.0)
    page = SensitivityView(prof).as_html()
    assert page.count('height="2"') == 1 + len(prof.sensitivity())


def test_what_to_do_about_uncertain_ops_is_said_once(prof, monkeypatch):
    monkeypatch.setattr(sentences, "MAX_WIDTH", 0.0)
    view = SensitivityView(prof)
    for text in (view.as_text(), view.as_html()):
        assert text.count("too uncertain") == 2
        assert text.count("Repeat it when the machine is less busy") == 1


def test_every_form_has_the_ops(prof):
    view = SensitivityView(prof)
    bundle = view._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", "image/png"}
    assert bundle["text/plain"] == repr(view)
    for name in ("prepare", "attention"):
        assert f"<code>{name}</code>" in bundle["text/html"]
        assert bundle["text/html"].count("<svg") == 1
    picture = Image.open(io.BytesIO(base64.b64decode(bundle["image/png"])))
    assert picture.width == 1440
    assert view.to_frame().equals(prof.sensitivity())


def test_the_table_is_displayed_in_short(prof):
    found = prof.sensitivity()
    head = "name device   host device sensitivity host sensitivity saving if free limit"
    lines = repr(found).splitlines()
    assert lines[0].split() == head.split()
    row = found.iloc[0]
    assert lines[1].split()[1:3] == ["prepare", "0"]
    assert len(lines) == 1 + len(found) + 1  # a line per row
    slope = f"{row['host_sensitivity']:.2f} ± "
    for text in (lines[1], page := found._repr_html_()):
        assert slope in text
        assert f"({duration(row['saving_low_ns'])} to {duration(row['saving_high_ns'])})" in text
    assert page.count("<th>") == 1 + 7 + len(found)
    for column in found.columns:
        assert column in lines[-1]
        assert column in page
    assert type(found[["name", "agrees"]]) is pd.DataFrame
    del found["note"]
    assert "device_share" in repr(found).splitlines()[0]


def test_the_note_of_an_op_and_the_reason_of_an_empty_table_are_displayed(prof):
    found = prof.sensitivity()
    found.loc[0, "note"] = "replayed host: 0.10"
    assert "replayed host: 0.10" in repr(found)
    assert "replayed host: 0.10" in found._repr_html_()
    empty = epprof_nb.testing.synthetic_profile(activities=100).sensitivity()
    assert "No experiment was made" in repr(empty)
    assert "not all is shown" not in repr(empty)


def test_pages_and_summaries_have_the_experiment(prof, tmp_path):
    prof.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<code>prepare</code>" in page
    assert page.count("Experiment: 40 repeats with delays.") == 1
    for form in ("text", "json"):
        summary = prof.summary(format=form)
        assert "Experiment: 40 repeats with delays." in summary
        assert "of 7.32 ms would be saved" in summary


def test_names_are_escaped():
    def step(machine):
        with machine.op("<script>alert(1)</script>\x1b\u202e"):
            machine.launch(5 * MS)
        machine.synchronize()

    view = SensitivityView(Machine(scatter=20_000).experiment(step)[0])
    for text in (view.as_html(), view.as_text()):
        assert r"\x1b\u202e" in text
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<script" not in view.as_html()


@pytest.mark.parametrize("info", [{}, {"refused": "the repeats scatter by 40 %."}])
def test_without_measurements_only_the_reason_is_shown(info):
    prof = epprof_nb.testing.synthetic_profile(activities=100)
    prof.info["experiment"] = info
    bundle = SensitivityView(prof)._repr_mimebundle_()
    assert bundle["text/plain"] == f"No experiment: {info.get('refused', '')}"
    assert set(bundle) == {"text/plain", "text/html"}
    assert "<table" not in bundle["text/html"]
