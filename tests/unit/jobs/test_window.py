"""Windows of a job: a stretch of several processes as one profile with all its analyses."""

import inspect
import pickle
from threading import Thread

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native, host
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.breakdowns.by_range import by_range
from epprof_nb.analysis.summary.headline import headline_of
from epprof_nb.analysis.utilisation import counters
from epprof_nb.data.schema import HOST_SAMPLES
from epprof_nb.files.epprof import parquet
from epprof_nb.jobs import part_profiles
from epprof_nb.jobs.job import Job
from epprof_nb.profiles import Profile
from epprof_nb.testing import synthetic_job, synthetic_profile
from epprof_nb.views.view_model import ViewModel
from tests.helpers import tiny
from tests.helpers.jobs import add_part, manifest
from tests.helpers.tiny import activity, call, kernel, op, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks

ONE_BY_ONE = ("critical_path", "waits", "launches", "steadiness", "by_step", "by_phase")


def two(**fields):
    profiles = {rank: synthetic_profile(400, seed=rank) for rank in range(2)}
    return Job(profiles, {rank: manifest(rank, **fields) for rank in profiles})


@pytest.fixture(scope="module")
def whole():
    job = two()
    return job, job.window(0, job.end_ns)


def test_a_window_of_all_has_the_rows_of_all(whole):
    job, prof = whole
    for name, table in prof.tables.items():
        assert len(table) == sum(len(job[rank].tables[name]) for rank in job), name
    assert prof.by_op()["self_device_ns"].sum() == job.by_op()["self_device_ns"].sum()
    assert prof.by_device()["device"].tolist() == ["rank 0, GPU 0", "rank 1, GPU 0"]
    assert prof.by_device()["device_ns"].tolist() == job.by_rank()["device_ns"].tolist()
    # The second rank begins a millisecond later.
    starts = prof.activities.groupby("device_id")["start_ns"].min()
    assert starts[1] - 10**6 == job[1].activities["start_ns"].min()


def test_numbers_of_one_rank_never_meet_those_of_another(whole):
    _, prof = whole
    activities, calls, ops = prof.activities, prof.api_calls, prof.ops
    assert ops.index.is_unique
    rank = activities["device_id"].to_numpy(dtype=float, na_value=np.nan)
    for column in ("correlation_id", "op_id", "thread_id", "context_id"):
        by_device = activities.assign(rank=rank).dropna(subset=["rank", column])
        assert by_device.groupby(column)["rank"].nunique().max() == 1, column
    joined = activities.merge(calls, on="correlation_id")
    assert len(joined) == len(activities)
    assert (joined["thread_id_x"] == joined["thread_id_y"]).all()
    parents = ops["parent_op_id"].dropna()
    assert (ops.loc[parents, "thread_id"].to_numpy() == ops.loc[parents.index, "thread_id"]).all()
    assert sorted(set(activities["stream_id"].dropna())) == [7, 13, 14, 15]


def test_lanes_are_those_of_one_rank_after_the_other(whole):
    _, prof = whole
    lanes = ViewModel(prof).layout.lanes
    ranks = [0 if "rank 0" in f"{lane.label} {lane.title}" else 1 for lane in lanes]
    assert ranks == sorted(ranks)
    for rank in (0, 1):
        kinds = [lane.kind for lane, of in zip(lanes, ranks, strict=True) if of == rank]
        assert "ops" in kinds
        assert kinds[-1] == "stream"
        assert kinds == sorted(kinds, key=lambda kind: kind == "stream")


def test_events_are_in_the_lanes_of_their_rank(whole):
    _, prof = whole
    layout = ViewModel(prof).layout
    for event in np.linspace(0, len(prof.activities) - 1, 50).astype(int).tolist():
        lane, _ = layout.activities.lane_and_row(event)
        if lane >= 0:
            assert layout.lanes[lane].device == prof.tables["activities"]["device_id"][event]
    for event in np.linspace(0, len(prof.ops) - 1, 50).astype(int).tolist():
        lane, _ = layout.ops.lane_and_row(event)
        if lane >= 0:
            assert layout.lanes[lane].thread == prof.tables["ops"]["thread_id"][event]


def test_threads_have_names(whole):
    _, prof = whole
    names = [thread["name"] for thread in prof.info["threads"]]
    assert names.count("rank 0, main thread") == 1
    assert names.count("rank 1, main thread") == 1


@pytest.mark.parametrize("name", [n for n in dir(Profile) if not n.startswith("_")])
def test_every_public_method_works_on_a_window(whole, name, tmp_path):
    _, prof = whole
    member = getattr(prof, name)
    if not inspect.ismethod(member):
        assert member is not None or name == "baseline"
        return
    calls = {
        "sql": ("select count(*) n from activities",),
        "evidence": (1,),
        "what_if": ({"waits": 0},),
        "roofline": (),
        "from_data": (prof,),
        **{n: (tmp_path / n,) for n in dir(Profile) if n.startswith("to_")},
        "save": (tmp_path / "a.epprof",),
    }
    if name == "to_perfetto":
        pytest.importorskip("perfetto")
    if name == "to_collapsed":
        return  # needs stacks, which synthetic profiles have not
    found = member(*calls.get(name, ()), **({"measure": False} if name == "roofline" else {}))
    if name in ONE_BY_ONE and len(found):
        assert sorted(set(found["process"])) == ["rank 0", "rank 1"]


def test_views_and_their_pages_name_the_ranks(whole, tmp_path):
    _, prof = whole
    prof.to_html(tmp_path / "a.html")
    prof.to_chrome(tmp_path / "a.json")
    assert "rank 1, GPU 0" in (tmp_path / "a.html").read_text()
    assert "rank 1, GPU 0" in (tmp_path / "a.json").read_text()
    assert "rank 1, GPU 0" in repr(prof)


@pytest.mark.parametrize("by", ["step", "op", "line"])
def test_the_critical_path_is_that_of_each_rank(by):
    job = two(begin_ns=10**9)
    prof = job.window(0, job.end_ns)
    for rank in job:
        alone = job.window(0, job.end_ns, rank).critical_path(by=by)
        found = prof.critical_path(by=by)
        of_rank = found[found["process"] == f"rank {rank}"].drop(columns="process")
        for column in ("duration_ns", "path_ns", "share"):
            if column in alone:
                assert of_rank[column].tolist() == alone[column].tolist()
        assert len(of_rank) == len(alone)


def test_findings_are_those_of_each_rank(whole):
    job, prof = whole
    found = prof.insights()
    assert set(found["text"].str.split(":").str[0]) <= {"rank 0", "rank 1"}
    expected = sum(len(job.window(0, job.end_ns, rank).insights()) for rank in job)
    assert len(found) == expected > 0
    for rank in range(1, len(found) + 1):
        evidence = prof.evidence(rank)
        process = int(found.iloc[rank - 1]["text"][5])
        if "device_id" in evidence:
            assert set(evidence["device_id"].dropna()) <= {process}


def test_a_host_explains_only_its_own_device():
    # Rank 0 waits for its device while only the device of rank 1 works.
    waits = profile(
        [op(1, "wait", 0, 100)],
        [kernel(5, 10, 1, correlation_id=1), kernel(95, 99, 1, correlation_id=3)],
        [
            call(0, 2, correlation_id=1, op_id=1),
            call(3, 50, correlation_id=2, name="cuStreamSynchronize", op_id=1),
            call(60, 62, correlation_id=3, op_id=1),
        ],
        info={"wall_ns": 100},
    )
    works = profile([], [kernel(3, 90)], info={"wall_ns": 100})
    prof = Job({0: waits, 1: works}).window(0, 100)
    alone = waits.waits()
    assert prof.waits()["busy_ns"].tolist() == alone["busy_ns"].tolist() == [5]
    assert prof.waits()["idle_after_ns"].tolist() == alone["idle_after_ns"].tolist()


def test_what_crosses_the_bounds_is_cut(whole):
    job, _ = whole
    start, end = 60_500_000, 61_500_000
    prof = job.window(start, end, ranks=[1])
    assert prof.wall_ns == 10**6
    for table in (prof.activities, prof.api_calls, prof.ops):
        assert table["start_ns"].between(0, 10**6).all()
        assert table["end_ns"].between(0, 10**6).all()
    rank = job[1].activities
    offset = 10**6
    clipped = (rank["end_ns"] + offset).clip(start, end) - (rank["start_ns"] + offset).clip(
        start, end
    )
    assert prof.activities["duration_ns"].sum() == clipped.sum() > 0
    # The ops around the stretch are there, too.
    assert prof.ops["parent_op_id"].dropna().isin(prof.ops.index).all()
    assert "In[3]" in set(prof.ops["name"])


def test_two_gpus_and_peer_copies_of_a_rank_get_new_numbers():
    def copies(rank):
        return profile(
            [],
            [
                kernel(0, 5, device_id=2),
                activity(
                    "memcpy", 5, 9, device_id=2, copy_kind="PtoP", bytes=100 + rank,
                    src_device_id=2, dst_device_id=5,
                ),
                kernel(1, 4, device_id=5),
            ],
            info={"wall_ns": 10, "devices": [{"device_id": i, "kind": "gpu"} for i in range(8)]},
        )  # fmt: skip

    prof = Job({rank: copies(rank) for rank in (3, 4)}).window(0, 10)
    table = prof.by_device().set_index("device")
    assert list(table.index) == [
        "rank 3, GPU 2", "rank 3, GPU 5", "rank 4, GPU 2", "rank 4, GPU 5"
    ]  # fmt: skip
    assert table["sent_bytes"].tolist() == [103, 0, 104, 0]
    assert table["received_bytes"].tolist() == [0, 103, 0, 104]
    assert table["bytes"].tolist() == [103, 0, 104, 0]


def test_a_window_is_a_profile_like_others(whole, tmp_path):
    _, prof = whole
    prof.save(tmp_path / "a.epprof")
    for copy in (epprof_nb.load(tmp_path / "a.epprof"), pickle.loads(pickle.dumps(prof))):
        assert copy.waits().equals(prof.waits())
    assert prof.redacted().waits()["process"].tolist() == prof.waits()["process"].tolist()


@pytest.mark.parametrize("rows", [[5], [9, 2], [0, 10**9], "ab", None])
def test_rows_of_processes_in_a_damaged_file_are_not_believed(whole, rows):
    _, prof = whole
    copy = Profile.from_data(prof)
    copy.info["processes"] = [{"name": f"p{i}", "rows": {"ops": rows}} for i in range(2)]
    assert len(copy.waits()) == 0
    assert len(copy.critical_path()) >= 0


def test_windows_without_anything_are_refused():
    job = two()
    for t0, t1, ranks in ((5, 5, None), (9, 3, None), (0, 10, [])):
        with pytest.raises(ValueError, match="has nothing in it"):
            job.window(t0, t1, ranks)
    with pytest.raises(KeyError, match="no rank 7"):
        job.window(0, 10, ranks=[0, 7])


def test_an_empty_stretch_is_an_empty_profile(whole):
    job, _ = whole
    prof = job.window(job.end_ns + 10**9, job.end_ns + 2 * 10**9)
    assert len(prof.activities) == 0
    assert len(prof.by_op()) == 0
    assert repr(prof)


def test_stored_jobs_have_windows(tmp_path):
    for rank in range(3):
        add_part(tmp_path, rank)
    job = epprof_nb.load(tmp_path)
    assert job.window(0, job.end_ns, [0, 2]).by_device()["device"].tolist() == [
        "rank 0, GPU 0", "rank 2, GPU 0"
    ]  # fmt: skip


def assert_same(found, expected):
    assert found.info == expected.info
    assert found.sources == expected.sources
    for name, table in expected.tables.items():
        for column in table.schema.columns:
            values, others = (
                t.names(column.name).to_list()
                if column.kind in {"name", "args"}
                else t[column.name].tolist()
                for t in (found.tables[name], table)
            )
            assert values == others, (name, column.name)


@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 0.97])
def test_a_stored_job_reads_a_window_alone(tmp_path, monkeypatch, share):
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 50)
    stored = synthetic_job(tmp_path, activities=2_000, ranks=2)
    whole = Job({rank: stored.read(rank) for rank in stored}, {p.number: p.manifest for p in
                stored.processes})  # fmt: skip
    monkeypatch.delattr(part_profiles, "read_profile")
    read = []

    def check_size(content, chunk, *more):
        read.append(chunk.values)
        return chunk_size(content, chunk, *more)

    chunk_size = parquet.chunk_size
    monkeypatch.setattr(parquet, "chunk_size", check_size)
    begin = int(share * stored.end_ns)
    end = begin + stored.end_ns // 100
    assert_same(stored.window(begin, end), whole.window(begin, end))
    columns = len(whole[0].tables["activities"].schema.names)
    assert sum(read) < columns * 2_000  # less than all activities


def test_an_op_of_no_length_is_in_the_window_that_begins_with_it():
    ops = [op(i, f"{i}", at, at, repeat=i) for i, at in enumerate((99, 100, 199, 200))]
    found = Job({0: profile(ops, info={"wall_ns": 400})}).window(100, 200).ops
    assert found["name"].tolist() == ["1", "2"]
    assert found["repeat"].isna().all()  # it would be of several processes


def test_a_stored_window_has_ops_that_lie_outside_of_it(tmp_path):
    cell = op(1, "In[1]", 0, 10, op_type="cell", thread_id=5)
    ops = [
        op(9, "captured", -90, -80, status="earlier", thread_id=4), cell,
        op(2, "launches", 20, 30, thread_id=6), op(3, "inside", 105, 130, thread_id=6),
    ]  # fmt: skip
    prof = profile(ops, [kernel(110, 120, 2), kernel(300, 310, 3)], info={"wall_ns": 400})
    Job({0: prof}).save(tmp_path)
    found = epprof_nb.load(tmp_path).window(100, 200)
    assert_same(found, Job({0: prof}).window(100, 200))
    assert found.activities["op_id"].notna().tolist() == [True]


def test_another_clock_is_said():
    clocks = [{"boot_id": name, "time_namespace": "t", "error_ns": 0} for name in "aab"]
    profiles = {rank: synthetic_profile(50) for rank in range(3)}
    for rank, prof in profiles.items():
        prof.info["started_at_epoch_ns"] = 10**18 + rank * 1000
    job = Job(profiles, {r: manifest(r, clock=clocks[r], begin_ns=10**9 + r) for r in profiles})
    assert job.ranks["clock_error_ns"].isna().tolist() == [False, False, True]
    notes = job.window(0, job.end_ns).info["notes"]
    assert any("clock error of rank 2 is not known" in note for note in notes)
    assert not any("clock error" in n for n in job.window(0, job.end_ns, [0, 1]).info["notes"])


def record(number):
    """Record work of two threads on two streams of the host device."""

    def work(stream):
        with epprof_nb.op("worker"):
            x = host.to_device(np.full(50_000, number, np.float32), stream)
            y = host.empty(x.shape, x.dtype)
            for _ in range(5):
                with epprof_nb.op("step"):
                    host.launch(np.sqrt, x, y, stream=stream)
            assert host.to_host(y, stream)[0] == np.sqrt(np.float32(number))

    begin_ns = _native.now_ns()
    with epprof_nb.profile() as prof:
        threads = [Thread(target=work, args=(host.Stream(),)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return prof, manifest(number, begin_ns=begin_ns, end_ns=_native.now_ns())


def test_recordings_of_the_host_device_keep_their_tables():
    recorded = {number: record(number) for number in range(2)}
    job = Job({n: r[0] for n, r in recorded.items()}, {n: r[1] for n, r in recorded.items()})
    # The recordings follow each other on one clock.
    assert job.placements[1].offset_ns >= job[0].wall_ns
    prof = job.window(0, job.end_ns)
    assert prof.by_device()["device"].tolist() == ["rank 0, host device", "rank 1, host device"]
    assert prof.by_device()["kernels"].tolist() == [10, 10]
    by_name = prof.by_op().set_index("name")
    assert by_name.loc["step", ["count", "kernels"]].tolist() == [20, 20]
    starts = prof.activities.groupby("device_id")["start_ns"].agg(["min", "max"])
    assert starts.loc[0, "max"] < starts.loc[1, "min"]
    for rank in job:
        alone = job[rank].waits().set_index("api_name")["waits"].to_dict()
        found = prof.waits()
        of_rank = found[found["process"] == f"rank {rank}"].set_index("api_name")
        assert of_rank["waits"].to_dict() == alone


def test_the_time_before_and_after_a_process_is_not_idle():
    """The second process begins 3 s after the first one, works for 1 of 2 s, and ends first."""
    s = 10**9
    lengths = {0: 10 * s, 1: 2 * s}
    profiles = {
        rank: profile([], [kernel(s // 2, 3 * s // 2)], info={"wall_ns": wall})
        for rank, wall in lengths.items()
    }
    begins = {0: s, 1: 4 * s}
    job = Job(
        profiles,
        {n: manifest(n, begin_ns=begins[n], info=dict(profiles[n].info)) for n in profiles},
    )
    prof = job.window(0, job.end_ns)
    assert prof.by_device()["idle_ns"].tolist() == job.by_rank()["idle_ns"].tolist() == [9 * s, s]
    gaps = prof.gaps()
    late = gaps[gaps["device_id"] == 1]
    assert late["duration_ns"].tolist() == [s // 2, s // 2]
    assert late["start_ns"].tolist() == [3 * s, 3 * s + 3 * s // 2]
    index = ProfileIndex(prof)
    assert [busy.share for busy in headline_of(index).busy] == [0.1, 0.5]
    whole = by_range(index, 0, 10 * s)["devices"]
    assert [(d["busy"], d.get("unknown", 0)) for d in whole] == [(s, 0), (s, 8 * s)]
    assert by_range(index, 4 * s, 6 * s)["devices"][1]["unknown"] == s
    assert counters.tracks(index)[2]["unknown"] == [[0, 3 * s], [5 * s, 10 * s]]
    # A stretch that the process does not fill.
    part = job.window(3 * s + s // 2, 20 * s, ranks=1)
    assert part.by_device()["idle_ns"].tolist() == [s // 2]
    # Curves are drawn in the time of the process only.
    axes = prof.plot.utilisation(bins=10)
    busy = [np.asarray(patch.get_data().values) for patch in axes.patches]
    nan = np.nan
    np.testing.assert_array_equal(busy[0], [50, 50, *[0] * 8])
    np.testing.assert_array_equal(busy[1], [nan, nan, nan, 50, 50, *[nan] * 5])


def test_findings_on_a_process_are_bounded_by_its_own_life():
    """The second process begins 5 s after the first one, and its function takes 0.3 of 0.5 s."""
    s = 10**9
    samples = [
        {"start_ns": i * s // 100, "interval_ns": s // 100, "stack_id": 0, "thread_id": 1}
        for i in range(30)
    ] + [
        {"start_ns": i * s // 100, "interval_ns": s // 100, "stack_id": 1, "thread_id": 1}
        for i in range(30, 50)
    ]
    rows, _ = stack_rows("load.py:read:5", "load.py:<module>:9")
    worker = with_stacks(
        profile([op(1, "cell", 0, s // 2, thread_id=1)], [], info={"wall_ns": s // 2}), rows
    )
    worker.tables["host_samples"] = tiny.table(HOST_SAMPLES, samples)
    profiles = {0: profile([], [kernel(0, 10 * s)], info={"wall_ns": 10 * s}), 1: worker}
    begins = {0: s, 1: 6 * s}
    job = Job(
        profiles,
        {n: manifest(n, begin_ns=begins[n], info=dict(profiles[n].info)) for n in profiles},
    )
    alone = worker.insights()
    assert alone["gain_ns"].tolist() == [3 * s // 10]
    for ranks, name in ((None, "rank 1: "), ([1], "")):
        prof = job.window(0, job.end_ns, ranks=ranks)
        found = prof.insights()
        (at,) = np.flatnonzero(found["kind"] == "hot function")
        assert found["text"][at] == name + alone["text"][0]
        assert found["gain_ns"][at] == found["gain_high_ns"][at] == 3 * s // 10
        assert found["start_ns"][at] == 5 * s
        assert found["end_ns"][at] == 5 * s + s // 2
        assert prof.evidence(at + 1)["name"].tolist() == ["cell"]
    assert "(300 ms, in 30 samples)" in job.summary()


def test_an_array_chooses_its_ranks():
    job = two()
    window = job.window(0, job.end_ns, ranks=np.array([0, 1]))
    assert len(window.by_device()) == len(job.window(0, job.end_ns).by_device())


@pytest.mark.parametrize(("t0", "t1"), [(0, np.inf), (-np.inf, 9), (np.nan, 9), (0, 10**30)])
def test_infinite_windows_are_refused(t0, t1):
    job = two()
    with pytest.raises(ValueError, match=f"0 <= t0 < t1 <= {job.end_ns}"):
        job.window(t0, t1)


def test_ranks_from_tables_choose_one_process_and_texts_none():
    job = two()
    rank = job.by_rank().reset_index()["rank"].iloc[1]
    expected = job.window(0, job.end_ns, ranks=[1]).by_device()["device"].tolist()
    assert job.window(0, job.end_ns, ranks=rank).by_device()["device"].tolist() == expected
    with pytest.raises(TypeError):
        job.window(0, job.end_ns, ranks="01")
    with pytest.raises(KeyError, match="no rank '1'"):
        job["1"]
