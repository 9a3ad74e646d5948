"""Views and traces of jobs: one clock for strips, collectives and traces, and what is missing."""

import json

import numpy as np
import pytest

import epprof_nb
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.jobs.job import Job
from epprof_nb.jobs.job_views import view_of
from epprof_nb.testing import synthetic_profile
from epprof_nb.views.renderers.job_model import BINS
from tests.helpers.jobs import add_part, manifest
from tests.helpers.tiny import kernel, profile
from tests.unit.files.exporters.test_perfetto import Read

MS = 1_000_000
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
GPU = {"devices": [{"device_id": 0, "name": "Test GPU", "kind": "gpu"}]}


def rank_of(slow_ms=0, steps=12):
    """A training loop whose all-reduces end every 10 ms."""
    work = []
    for step in range(steps):
        begin = step * 10 * MS
        work += [
            kernel(begin, begin + MS, name="gemm"),
            kernel(begin + (2 + slow_ms) * MS, begin + 9 * MS, name=ALL_REDUCE),
        ]
    return profile((), work, info={"wall_ns": steps * 10 * MS, **GPU})


def torchrun(folder, *slow_ms):
    """A job of ranks, and of the launcher, which began 120 ms before them."""
    begin = {"begin_ns": 10**9}
    add_part(folder, None, profile=rank_of(steps=1), pid=900, **begin)
    for rank, slow in enumerate(slow_ms):
        ranked = {"begin_ns": 10**9 + 120 * MS, "parent_pid": 900}
        add_part(folder, rank, profile=rank_of(slow), **ranked)
    return epprof_nb.load(folder)


def test_strips_and_collectives_are_on_the_clock_of_the_job(tmp_path):
    job = torchrun(tmp_path, 0, 4, 0)
    shown = view_of(job).shown
    assert shown.span_ns == 240 * MS
    assert [row.label for row in shown.rows] == ["rank 0", "rank 1", "rank 2", "process 3"]
    front = shown.fronts[0]
    assert front.arrivals == (122 * MS, 126 * MS, 122 * MS, None)
    # A rank waits from 2 to 6 ms of each 10 ms of its profile, which begins in the middle.
    waits = shown.rows[0].waiting
    assert not waits[: BINS // 2].any()
    assert waits[BINS // 2 :].mean() == 0.4
    assert shown.rows[0].waiting_share == 0.4
    assert shown.rows[1].waiting_share == 0
    assert np.isnan(shown.rows[0].busy[: BINS // 2]).all()


def test_the_busy_share_of_a_row_is_that_of_the_table(tmp_path):
    job = torchrun(tmp_path, 0, 4)
    ranks = job.ranks
    for row in view_of(job).shown.rows:
        of_rank = ranks.loc[row.processes[0].rank]
        share = of_rank["busy_ns"] / (of_rank["busy_ns"] + of_rank["idle_ns"])
        assert row.busy_share == share


def test_the_output_of_a_job_has_a_sentence_on_stragglers(tmp_path):
    bundle = torchrun(tmp_path, 0, 4, 0)._repr_mimebundle_()
    for text in (bundle["text/plain"], bundle["text/html"]):
        assert "Rank 1 was late at 11 of 11 collectives" in text
    assert bundle["image/png"]


def test_findings_on_the_children_of_a_cell_are_sentences(tmp_path):
    add_part(tmp_path, None, pid=900, followed="cell")
    gaps = [kernel(at * 100 * MS, at * 100 * MS + MS) for at in range(5)]
    worker = profile((), gaps, info={"wall_ns": 500 * MS, **GPU})
    add_part(tmp_path, None, pid=901, followed="running", profile=worker)
    add_part(tmp_path, None, pid=902, followed="running", profile=profile())
    (first, *_) = sentences = view_of(epprof_nb.load(tmp_path)).shown.sentences
    assert first.startswith("process 1: GPU idle")
    assert not any("process 0" in sentence for sentence in sentences)
    add_part(tmp_path, None, pid=903, followed="running", profile=worker)
    (first, *_) = sentences = view_of(epprof_nb.load(tmp_path)).shown.sentences
    assert first.startswith("2 processes, most of all process 1: GPU idle")
    assert not any("process 3" in sentence for sentence in sentences)


def test_a_page_has_a_timeline_of_the_ranks(tmp_path):
    job = torchrun(tmp_path / "run", 0, 4)
    job.to_html(tmp_path / "job.html")
    page = (tmp_path / "job.html").read_text()
    assert "Timeline of 3 ranks: 0, 1, 2." in page
    assert 'data-link="job"' in page
    assert "rank 1, GPU 0" in page


def test_processes_without_ranks_are_called_processes(tmp_path):
    for pid, slow in ((7, 0), (8, 5)):
        add_part(tmp_path / "run", None, pid=pid, profile=rank_of(slow))
    job = epprof_nb.load(tmp_path / "run")
    assert "% by process)" in job._repr_mimebundle_()["text/plain"].splitlines()[0]
    job.to_html(tmp_path / "job.html")
    assert "Timeline of 2 processes: 0, 1." in (tmp_path / "job.html").read_text()


def test_redaction_covers_pages_and_traces(tmp_path):
    add_part(tmp_path / "run", 0, hostname="secret-host", command=["python", "/home/ada/x.py"])
    job = epprof_nb.load(tmp_path / "run")
    assert "secret-host" in job._repr_mimebundle_()["text/html"]
    assert "secret-host" not in job.redacted()._repr_mimebundle_()["text/html"]
    job.to_html(tmp_path / "job.html", redact=True)
    job.to_chrome(tmp_path / "job.json", redact=True)
    for file in ("job.html", "job.json"):
        text = (tmp_path / file).read_text()
        assert "secret-host" not in text
        assert "/home/ada" not in text
        assert "loss.backward" not in text


def test_a_missing_rank_and_a_damaged_part_are_in_the_table(tmp_path):
    for rank in (0, 1, 3):
        add_part(tmp_path, rank, profile=rank_of(), world_size=4)
    (tmp_path / manifest(1).folder_name / "activities.parquet").write_bytes(b"PAR1 no")
    job = epprof_nb.load(tmp_path)
    lines = job._repr_mimebundle_()["text/plain"].splitlines()
    assert lines[0].startswith("3 of 4 processes recorded")
    assert any(line.startswith("  rank 1: damaged") for line in lines)
    assert any(line.startswith("  rank 2: missing") for line in lines)
    job.to_html(tmp_path / "job.html")
    assert "Timeline of 2 ranks: 0, 3." in (tmp_path / "job.html").read_text()


def test_a_redacted_job_with_a_damaged_part_is_shown(tmp_path):
    for rank in range(3):
        add_part(tmp_path, rank, profile=rank_of())
    (tmp_path / manifest(1).folder_name / "activities.parquet").write_bytes(b"PAR1 no")
    copy = epprof_nb.load(tmp_path).redacted()
    copy.to_html(tmp_path / "job.html")
    assert "Timeline of 2 ranks: 0, 2." in (tmp_path / "job.html").read_text()
    assert "rank 1: damaged" in copy._repr_mimebundle_()["text/plain"]


def test_a_part_of_which_only_device_work_can_be_read_leaves_out_the_timeline(tmp_path):
    add_part(tmp_path, 0, profile=rank_of())
    part = add_part(tmp_path, None, pid=900)
    (part / "api_calls.parquet").write_bytes(b"PAR1 no")
    epprof_nb.load(tmp_path).to_html(tmp_path / "job.html")
    page = (tmp_path / "job.html").read_text()
    assert "The page has no timeline, because a part cannot be read" in page
    assert "process 1" in page


@pytest.mark.parametrize("profiles", [{}, {0: profile(), 1: profile()}])
def test_a_job_without_any_event_is_shown(profiles, tmp_path):
    job = Job(profiles)
    assert job._repr_mimebundle_()["text/plain"].splitlines()[0].endswith("   0 s")
    job.to_html(tmp_path / "job.html")
    job.to_chrome(tmp_path / "job.json")
    json.loads((tmp_path / "job.json").read_text())


def test_traces_have_the_processes_of_the_job_on_its_clock(tmp_path):
    job = torchrun(tmp_path / "run", 0, 4)
    job.to_chrome(tmp_path / "job.json")
    events = json.loads((tmp_path / "job.json").read_text())["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {1000: "rank 0", 1001: "rank 1", 900: "process 2"}
    first = {}
    for event in events:
        if event.get("name") == ALL_REDUCE:
            first.setdefault(event["pid"], event["ts"])
    assert first == {1000: 122_000, 1001: 126_000, 900: 2_000}
    job.to_perfetto(tmp_path / "job.pftrace")
    read = Read((tmp_path / "job.pftrace").read_bytes())
    starts = {s["track"][0]: s["start"] for s in reversed(read.slices) if s["name"] == ALL_REDUCE}
    assert starts.keys() == {"rank 0", "rank 1", "process 2"}
    assert min(s["start"] for s in read.slices if s["track"][0] == "rank 1") == 120 * MS


def test_a_job_of_profiles_alone_is_shown():
    job = Job({0: rank_of(), 1: rank_of(3)})
    lines = job._repr_mimebundle_()["text/plain"].splitlines()
    assert lines[0].startswith("2 ranks   120 ms   devices busy ")
    assert lines[0].endswith("12 collectives   waiting for later ranks 15 %")


def test_profiles_without_manifests_are_placed_as_their_collectives_are():
    first, late = rank_of(), rank_of()
    first.info["started_at_epoch_ns"], late.info["started_at_epoch_ns"] = 10 * MS, 15 * MS
    job = Job({0: first, 1: late})
    shown = view_of(job).shown
    assert shown.span_ns == 125 * MS
    assert shown.fronts[0].arrivals == (2 * MS, 7 * MS)


@pytest.mark.parametrize("table", ["activities", "ops", "api_calls"])
def test_a_damaged_part_is_left_out_of_traces_and_named(tmp_path, table):
    for rank in range(3):
        whole = synthetic_profile(activities=100)
        whole.info["host_collectives"] = 1
        add_part(tmp_path / "run", rank, profile=whole)
    (tmp_path / "run" / manifest(1).folder_name / f"{table}.parquet").write_bytes(b"PAR1 no")
    job = epprof_nb.load(tmp_path / "run")
    with pytest.warns(UserWarning, match="The trace lacks rank 1: .*checksum") as caught:
        job.to_chrome(tmp_path / "job.json")
    assert caught[0].filename == __file__
    trace = json.loads((tmp_path / "job.json").read_text())
    names = [e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"]
    assert {"rank 0", "rank 2"} <= set(names)
    assert "rank 1" not in names
    with pytest.warns(UserWarning, match="lacks rank 1"):
        job.to_perfetto(tmp_path / "job.pftrace", redact=True)
    assert (tmp_path / "job.pftrace").stat().st_size
    assert job.ranks["state"].tolist() == ["complete", "damaged", "complete"]
    assert "1 of 3 processes has no profile (rank 1)" in job.by_rank().attrs["note"]
    job.to_html(tmp_path / "job.html")


def test_traces_warn_of_parts_that_were_damaged_when_the_job_was_loaded(tmp_path):
    for rank in range(2):
        add_part(tmp_path, rank, profile=rank_of())
    (tmp_path / manifest(1).folder_name / "manifest.json").write_text("{")
    job = epprof_nb.load(tmp_path)
    for name in ("to_chrome", "to_perfetto"):
        with pytest.warns(UserWarning, match="The trace lacks rank 1: .*damaged"):
            getattr(job, name)(tmp_path / "trace")


def test_a_trace_of_damaged_parts_only_is_an_error_and_no_file(tmp_path):
    part = add_part(tmp_path / "run", 0)
    (part / "ops.parquet").write_bytes(b"PAR1 no")
    for name in ("to_chrome", "to_perfetto"):
        with pytest.raises(ProfileFileError, match="checksum"):
            getattr(epprof_nb.load(tmp_path / "run"), name)(tmp_path / "trace")
    assert not (tmp_path / "trace").exists()
