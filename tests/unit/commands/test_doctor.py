"""``epprof doctor``, on simulated machines."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from types import SimpleNamespace

import pytest

from epprof_nb.commands import doctor_checks, doctor_report
from epprof_nb.commands.doctor_checks import Check
from epprof_nb.recording.cupti import find_library, gpu_state
from epprof_nb.recording.cupti.find_library import CuptiLibrary, CuptiNotFoundError, Environment
from epprof_nb.recording.stacks import availability

H200 = {
    "driver_version": "580.159.04",
    "cuda_version": "13.0",
    "gpus": [{"name": "NVIDIA H200", "compute_capability": "9.0"}],
}


@pytest.fixture
def machine(monkeypatch):
    """Simulate a machine: its GPU state, installed packages and process environment."""

    def make(gpu=None, installed=None, environment=None, found=None):
        monkeypatch.setattr(gpu_state, "snapshot", lambda: gpu or {})
        monkeypatch.setattr(doctor_checks, "distribution_version", (installed or {}).get)
        current = environment or Environment(version_of=(installed or {}).get)
        monkeypatch.setattr(Environment, "current", classmethod(lambda cls: current))

        def locate_libcupti():
            if found is None:
                raise CuptiNotFoundError("Nothing recorded: none. Install it with: pip x.")
            return found

        monkeypatch.setattr(find_library, "locate_libcupti", locate_libcupti)

    make()
    return make


def test_the_diagnosis_of_this_machine_is_whole():
    checks = doctor_report.diagnose()
    assert [check.name for check in checks] == [
        "platform", "Python", "Python stacks", "host samples", "dependencies", "native core",
        "NVIDIA driver", "CUDA", "libcupti", "profiling permission", "other profilers", "NVTX",
        "ONNX Runtime", "front end",
    ]  # fmt: skip
    for check in checks:
        assert check.found
        assert check.status in ("ok", "warning", "missing")
        assert bool(check.remedy) == (check.status != "ok")
        assert "the check failed" not in check.found


def test_missing_and_old_dependencies_are_named(machine, monkeypatch):
    declared = ["numpy>=1.26", "tqdm>=4.66", "click>=8.1", 'onnx>=1.16; extra == "onnx"']
    monkeypatch.setattr(doctor_checks.importlib.metadata, "requires", lambda _: declared)
    machine(installed={"numpy": "2.1.0", "tqdm": "4.10"})
    check = doctor_checks._dependencies()
    assert check.status == "missing"
    assert check.found == "tqdm 4.10 is not >=4.66; click is not installed"
    assert check.remedy == 'pip install "tqdm>=4.66" "click>=8.1"'
    machine(installed={"numpy": "2.1.0", "tqdm": "4.66", "click": "8.1"})
    assert doctor_checks._dependencies().found == "all 3 are installed"


def test_the_text_shows_every_check_and_its_remedy():
    checks = [Check("one", "ok", "fine"), Check("second", "missing", "x " * 80, "do this")]
    text = doctor_report.render(checks, width=60)
    assert text.splitlines()[0] == "ok       one     fine"
    assert text.splitlines()[-1].split() == ["->", "do", "this"]
    assert max(map(len, text.splitlines())) <= 60


@pytest.mark.parametrize(("status", "code"), [("ok", 0), ("warning", 0), ("missing", 1)])
def test_the_exit_code_says_whether_anything_is_missing(monkeypatch, capsys, status, code):
    monkeypatch.setattr(doctor_report, "CHECKS", (("x", lambda: Check("x", status, "found")),))
    assert doctor_report.run() == code
    assert "found" in capsys.readouterr().out


def test_a_check_that_breaks_hides_no_other(monkeypatch):
    def broken():
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(
        doctor_report, "CHECKS", (("bad", broken), ("platform", doctor_checks._platform))
    )
    first, second = doctor_report.diagnose()
    assert first.status == "warning"
    assert "ZeroDivisionError: oops" in first.found
    assert second.name == "platform"


def test_other_platforms_and_pythons_are_told(monkeypatch):
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert doctor_checks._platform().status == "missing"
    monkeypatch.setattr(platform, "python_implementation", lambda: "PyPy")
    assert doctor_checks._python().status == "missing"


def test_the_native_core_is_looked_at(monkeypatch):
    import epprof_nb
    from epprof_nb import _native

    assert doctor_checks._native_core().status in ("ok", "warning")
    monkeypatch.setattr(_native, "now_ns", lambda: 5)
    assert "differs from CLOCK_MONOTONIC" in doctor_checks._native_core().found
    monkeypatch.delattr(epprof_nb, "_native", raising=False)
    monkeypatch.setitem(sys.modules, "epprof_nb._native", None)
    check = doctor_checks._native_core()
    assert check.status == "missing"
    assert "C++ compiler" in check.remedy


def test_a_native_core_that_cannot_be_loaded_is_told_by_the_command():
    code = (
        "import sys; sys.modules['epprof_nb._native'] = None\n"
        "from epprof_nb.cli import main; main(['doctor'])"
    )
    environment = os.environ | {"NVTX_INJECTION64_PATH": "/x.so"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "missing  native core" in done.stdout
    assert "NVTX_INJECTION64_PATH=/x.so" in done.stdout
    assert "Not ready: see Python stacks, host samples, native core, NVTX." in done.stdout


def test_the_driver_is_described(machine):
    assert doctor_checks._driver().status == "warning"
    assert "epprof_nb.host" in doctor_checks._driver().remedy
    machine(gpu=H200)
    check = doctor_checks._driver()
    assert check.status == "ok"
    assert (
        "580.159.04, supports CUDA up to 13.0; NVIDIA H200 (compute capability 9.0)" in check.found
    )
    machine(gpu={**H200, "gpus": []})
    assert doctor_checks._driver().status == "warning"


def test_the_cuda_in_use_is_told_and_checked(machine):
    machine(gpu=H200, environment=Environment(mapped=("/x/libcudart.so.13",)))
    assert doctor_checks._cuda().found.startswith("libcudart.so.13 is loaded")
    machine(gpu=H200, installed={"cupy-cuda12x": "14.2.0"})
    assert "cupy-cuda12x 14.2.0 is installed" in doctor_checks._cuda().found
    both = ("/x/libcudart.so.12", "/x/libnvrtc.so.13")
    machine(gpu=H200, environment=Environment(mapped=both))
    assert doctor_checks._cuda().status == "warning"
    old_driver = {**H200, "cuda_version": "12.4"}
    machine(gpu=old_driver, environment=Environment(mapped=("/x/libcudart.so.13",)))
    check = doctor_checks._cuda()
    assert check.status == "missing"
    assert "CUDA 12 at most" in check.remedy
    machine(environment=Environment(environ={"CUDA_HOME": "/opt/cuda"}))
    assert "toolkit /opt/cuda" in doctor_checks._cuda().found


def test_libcupti_is_told_and_checked(machine):
    assert doctor_checks._cupti().status == "ok", "without a GPU none is needed"
    machine(gpu=H200)
    check = doctor_checks._cupti()
    assert check.status == "missing"
    assert check.remedy == "Install it with: pip x."
    found = CuptiLibrary("/site/libcupti.so.13", 13, "wheel nvidia-cuda-cupti 13.0.85")
    machine(gpu=H200, found=found)
    assert "CUDA 13, wheel nvidia-cuda-cupti 13.0.85" in doctor_checks._cupti().found
    machine(gpu={**H200, "cuda_version": "12.4"}, found=found)
    assert 'pip install "epprof-nb[cuda12]"' in doctor_checks._cupti().remedy


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RmProfilingAdminOnly: 1\n", "restricted to administrators"),
        ("RmProfilingAdminOnly: 0\n", "not restricted"),
        (None, "not restricted by the driver"),
    ],
)
def test_the_profiling_permission_is_told(tmp_path, monkeypatch, text, expected):
    parameters = tmp_path / "params"
    if text is not None:
        parameters.write_text(text)
    monkeypatch.setattr(doctor_checks, "_DRIVER_PARAMETERS", parameters)
    check = doctor_checks._permission()
    assert check.status == "ok"
    assert expected in check.found


@pytest.mark.parametrize(
    ("name", "value"),
    [("CUDA_INJECTION64_PATH", "/x.so"), ("NVTX_INJECTION64_PATH", "/x.so"),
     ("NSYS_PROFILING_SESSION_ID", "1"), ("KINETO_USE_DAEMON", "1"),
     ("LD_PRELOAD", "/opt/nvidia/nsight-systems/libToolsInjectionProxy64.so")],
)  # fmt: skip
def test_another_profiler_in_the_environment_is_told(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    check = doctor_checks._other_profilers()
    assert check.status == "warning"
    assert f"{name}={value}" in check.found


def test_another_profiler_in_the_process_is_told(monkeypatch):
    monkeypatch.setattr(find_library, "mapped_files", lambda: ("/opt/libcuda-injection.so",))
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/libjemalloc.so.2")
    check = doctor_checks._other_profilers()
    assert check.found == "libcuda-injection.so is loaded"
    monkeypatch.setattr(find_library, "mapped_files", lambda: ())
    assert doctor_checks._other_profilers().status == "ok"
    torch = SimpleNamespace(autograd=SimpleNamespace(_profiler_enabled=lambda: True))
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert doctor_checks._other_profilers().found == "torch.profiler is recording"


@pytest.mark.parametrize(
    ("installed", "status", "text"),
    [
        ({}, "ok", ""),
        ({"onnxruntime": "1.31.1"}, "ok", ""),
        ({"onnxruntime-gpu": "1.25.0"}, "ok", ""),
        ({"onnxruntime": "1.24.4"}, "warning", '"onnxruntime>=1.25"'),
        ({"onnxruntime": "1.31.1", "onnxruntime-gpu": "1.31.1"}, "warning", "pip uninstall"),
    ],
)
def test_onnxruntime_is_checked(machine, installed, status, text):
    machine(installed=installed)
    check = doctor_checks._onnxruntime()
    assert check.status == status
    assert text in check.remedy


def test_the_front_end_is_checked(machine, monkeypatch, tmp_path):
    monkeypatch.setattr(doctor_checks, "files", lambda _: tmp_path)
    machine(installed={"anywidget": "0.11.0"})
    assert "files of the viewer are missing" in doctor_checks._front_end().found
    static = tmp_path / "views" / "static"
    static.mkdir(parents=True)
    (static / "viewer.js").write_text("")
    assert doctor_checks._front_end().status == "ok"
    machine(installed={"anywidget": "0.9.2"})
    assert doctor_checks._front_end().status == "missing"
    machine(installed={"anywidget": "0.11.0", "jupyterlab": "3.6.1"})
    assert doctor_checks._front_end().status == "warning"


@pytest.mark.parametrize(
    ("version", "numbers"), [("1.25.0", (1, 25, 0)), ("1.25.0rc1", (1, 25, 0)), ("dev", ())]
)
def test_versions_are_compared_by_their_numbers(version, numbers):
    assert doctor_checks._numbers(version) == numbers


def test_two_wheels_of_onnx_runtime_are_told_with_what_to_do(monkeypatch):
    wheels = {"onnxruntime": "1.31.1", "onnxruntime-gpu": "1.31.1"}
    monkeypatch.setattr(doctor_checks, "distribution_version", wheels.get)
    check = doctor_checks._onnxruntime()
    assert check.status == "warning"
    assert check.found == "onnxruntime 1.31.1, onnxruntime-gpu 1.31.1"
    assert "pip uninstall onnxruntime onnxruntime-gpu" in check.remedy
    del wheels["onnxruntime"]
    assert doctor_checks._onnxruntime().status == "ok"
    wheels["onnxruntime-gpu"] = "1.24.4"
    assert "1.25" in doctor_checks._onnxruntime().remedy


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ({}, "Ready: GPU work is recorded."),
        ({"NVIDIA driver": "warning"}, "Ready, without a GPU:"),
        ({"NVIDIA driver": "warning", "front end": "missing"}, "Not ready: see front end."),
        ({"profiling permission": "warning"}, "may not be recorded: see profiling permission."),
        ({"ONNX Runtime": "warning"}, "Ready: GPU work is recorded."),
    ],
)
def test_the_last_line_says_what_can_be_recorded(monkeypatch, capsys, statuses, expected):
    names = [name for name, _ in doctor_checks.CHECKS]
    checks = [
        Check(name, status, "found", "" if status == "ok" else "Do this.")
        for name in names
        for status in [statuses.get(name, "ok")]
    ]
    monkeypatch.setattr(doctor_report, "diagnose", lambda: checks)
    assert doctor_report.run() == int("missing" in statuses.values())
    assert expected in capsys.readouterr().out.splitlines()[-1]


def test_releases_of_onnxruntime_without_graphs_are_named(machine):
    def found(version):
        machine(installed={"onnxruntime": version})
        return next(c for c in doctor_report.diagnose() if c.name == "ONNX Runtime").found

    assert found("1.25.3") == "onnxruntime 1.25.3; graphs of kernels in Python need 1.26"
    assert found("1.26.0") == "onnxruntime 1.26.0"


def test_python_stacks_that_cannot_be_read_are_told(monkeypatch):
    monkeypatch.setattr(availability, "why_unavailable", lambda: None)
    assert doctor_checks._stacks().status == "ok"
    monkeypatch.setattr(availability, "why_unavailable", lambda: "the interpreter is a debug build")
    check = doctor_checks._stacks()
    assert (check.status, check.found) == (
        "warning",
        "not recorded: the interpreter is a debug build",
    )
