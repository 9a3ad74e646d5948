"""The load of the host, with planted contents of ``/proc``."""

import json

import pytest

import epprof_nb
from epprof_nb.files.epprof.info_schema import check_info
from epprof_nb.recording.session import host_load, session
from epprof_nb.recording.session.host_load import HostReading, WaitReading, between, waited_between

S = 1_000_000_000


def reading(time_s, cpu_s, **more):
    return HostReading(round(time_s * S), round(cpu_s * S), **{"switches": (0, 0)} | more)


def test_the_time_of_the_cores_is_that_of_this_process_and_of_others():
    begin = reading(10, 3, busy_ns=100 * S, stolen_ns=0, waits_ns={"7": S}, pressure_ns=S)
    end = reading(
        12, 4.5, busy_ns=round(103.5 * S), stolen_ns=S // 2, waits_ns={"7": round(1.5 * S)},
        pressure_ns=2 * S, switches=(20, 30),
    )  # fmt: skip
    load = between(begin, end)
    assert load["own_cores"] == pytest.approx(0.75)
    assert load["other_cores"] == pytest.approx(1.0)
    assert load["stolen_cores"] == pytest.approx(0.25)
    assert load["waiting"] == pytest.approx(0.25)
    assert load["pressure"] == pytest.approx(0.5)
    assert (load["voluntary_switches"], load["involuntary_switches"]) == (20, 30)
    check_info({"load": load})


def test_a_share_of_the_time_is_at_most_1():
    begin, end = reading(0, 0, pressure_ns=0), reading(1, 1, pressure_ns=S + 7_200)
    assert between(begin, end)["pressure"] == 1.0


def test_others_use_no_more_than_the_cores():
    """A tick of 10 ms may be counted in a shorter time."""
    begin, end = reading(0, 0, busy_ns=0), reading(0.0026, 0.001, busy_ns=10 * S)
    load = between(begin, end)
    assert load["other_cores"] == load["cores"]


def test_threads_that_begin_or_end_in_between_count_as_far_as_they_are_known():
    begin = reading(0, 0, waits_ns={"1": 5 * S, "2": S})
    end = reading(4, 1, waits_ns={"1": 6 * S, "3": 2 * S})
    assert between(begin, end)["waiting"] == pytest.approx(0.75)


def test_a_wait_is_no_longer_than_the_time_off_the_cores():
    begin = WaitReading(0, {"1": 0, "2": 0})
    assert waited_between(begin, WaitReading(6, {"1": 3, "2": 0}), 10) == 3
    # Two threads waited at the same time.
    assert waited_between(begin, WaitReading(6, {"1": 3, "2": 4}), 10) == 4
    assert waited_between(begin, WaitReading(20, {"1": 3}), 10) == 0
    assert waited_between(begin, WaitReading(6, {}), 10) == 0


def test_repeats_that_are_ended_have_their_waits():
    running = session.start()
    for _ in range(3):
        running.begin_repeat()
        running.end_repeat()
    running.begin_repeat()
    info = running.stop().info
    assert len(info["repeats"]) == len(info["repeat_waits_ns"]) == 4
    assert min(info["repeat_waits_ns"]) >= 0
    check_info(info)


def test_what_a_system_does_not_provide_is_left_out(monkeypatch):
    def missing(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(host_load, "_read", missing)
    monkeypatch.setattr(host_load, "_THREADS", "/nowhere")
    load = between(host_load.read(), host_load.read())
    assert set(load) == {
        "cores", "own_cores", "voluntary_switches", "involuntary_switches", "read_ns",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["", "cpu", "cpu  0 0 0 0 0 0 0 0 0 0\n", "cpu a b c d e f g h\n"])
def test_cores_that_are_not_counted_are_unknown(monkeypatch, text):
    monkeypatch.setattr(host_load, "_read", lambda _: text)
    assert host_load.read().busy_ns is None


def test_the_contents_of_proc_are_read(monkeypatch):
    files = {
        "/proc/stat": "cpu  100 10 50 800 40 0 5 20 0 0\ncpu0 1 2 3\n",
        "/proc/pressure/cpu": "some avg10=0.60 avg60=1.63 avg300=3.35 total=2948\nfull total=9\n",
        "/proc/loadavg": "0.35 0.48 0.28 3/108 15401\n",
        "/sys/fs/cgroup/cpu.stat": "usage_usec 9\nnr_throttled 3\nthrottled_usec 70\n",
        "/proc/thread-self/stat": f"5 (a b) c) R {' '.join(map(str, range(4, 53)))}",
        "/sys/devices/system/cpu/cpu39/cpufreq/scaling_cur_freq": "2400000\n",
    }
    monkeypatch.setattr(host_load, "_read", lambda path: files.get(path, "900 77 3"))
    monkeypatch.setattr(host_load.os, "sysconf", lambda _: 100)
    found = host_load.read()
    assert found.busy_ns == 165 * S // 100
    assert found.stolen_ns == 20 * S // 100
    assert (found.pressure_ns, found.throttled_ns) == (2_948_000, 70_000)
    assert set(found.waits_ns.values()) == {77}
    assert (found.load_average, found.cpu_mhz) == (0.35, 2400.0)


def test_a_profile_has_the_load_of_its_time(tmp_path):
    with epprof_nb.profile() as prof:
        sum(i * i for i in range(200_000))
    load = prof.info["load"]
    assert load["own_cores"] > 0
    assert load["cores"] >= 1
    assert json.loads(json.dumps(load)) == load
    prof.save(tmp_path / "x.epprof")
    assert epprof_nb.load(tmp_path / "x.epprof").info["load"] == load
