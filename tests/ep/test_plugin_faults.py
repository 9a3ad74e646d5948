"""Misuse of the library, and programs that end or lack Python: a status or an error, no crash."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import onnxruntime
import pytest

from tests.ep.fake_cuda import library
from tests.ep.plugin_programs import run


def test_options_with_a_device_that_was_unregistered_are_refused():
    run("""
register()
old = options()
check(ort.InferenceSession(models.chain(), old))
ort.unregister_execution_provider_library(OURS)
refused(lambda: ort.InferenceSession(models.chain(), old), "was unregistered", "get_ep_devices")
register()
check(ort.InferenceSession(models.chain(), options()))
""")


def test_threads_register_and_unregister():
    run("""
from epprof_nb import ep
errors = []
def by_hand(name):
    try:
        for _ in range(20):
            register(name)
            ort.get_ep_devices()
            ort.unregister_execution_provider_library(name)
    except Exception as error:
        errors.append(error)
def sessions():
    try:
        for _ in range(20):
            check(ort.InferenceSession(models.chain(), providers=[ep.provider("host"), CPU]))
    except Exception as error:
        errors.append(error)
ep.provider("host")
threads = [threading.Thread(target=by_hand, args=(f"n{i}",)) for i in range(3)]
threads += [threading.Thread(target=sessions) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not errors, errors
""")


def test_python_ends_before_sessions_and_registrations():
    run("""
import atexit
register()
kept = check(ort.InferenceSession(models.chain(), options()))
sys.modules["kept"] = kept  # outlives the modules
value = ort.OrtValue.ortvalue_from_numpy(x, "gpu", 0)
sys.modules["value"] = value
register("late")
""")


def test_a_missing_package_is_reported_by_the_session():
    run("""
sys.modules["epprof_nb.ep.provider"] = None
register()
refused(lambda: ort.InferenceSession(models.chain(), options()), "needs the Python package")
""")


def test_python_ends_while_other_threads_run_kernels():
    run("""
import time
from epprof_nb import ep
from tests.ep.sessions import model_of
register()
running = threading.Semaphore(0)
@ep.kernel("Endless", domain="com.example", types="float32")
def endless(ctx, x):
    out = ctx.out(x.shape, x.dtype)
    running.release()
    while True:
        time.sleep(0.001)  # the thread wants the GIL while Python ends
model = model_of("Endless", {"x": x}, domain="com.example")
def work(**config):
    made = options()
    for key, value in config.items(): setattr(made, key, value)
    ort.InferenceSession(model, made).run(None, {"x": x})
for config in ({}, {"execution_mode": ort.ExecutionMode.ORT_PARALLEL}):
    threading.Thread(target=work, kwargs=config, daemon=True).start()
    assert running.acquire(timeout=60)
""")


def test_python_ends_while_another_thread_replays_a_graph():
    run("""
import time
from epprof_nb import ep
replayed = threading.Semaphore(0)
@ep.kernel("Sigmoid")
def sigmoid(ctx, x):
    time.sleep(0.05)  # nearly all time of the thread, which returns to Python in between
    ctx.xp.divide(1, 1 + ctx.xp.exp(-x), out=ctx.out(x.shape, x.dtype))
session = ep.session(models.chain(), device="host", enable_cuda_graph=True)
def work():
    while True:
        session.run(None, {"x": x})
        replayed.release()
threading.Thread(target=work, daemon=True).start()
for _ in range(4): assert replayed.acquire(timeout=60)
""")


def test_null_pointers_get_a_status():
    if not list(Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.*")):
        pytest.skip("this wheel has no library with OrtGetApiBase")
    run("""
import ctypes as C, pathlib
P, S = C.c_void_p, C.c_size_t
runtime = C.CDLL(str(next(pathlib.Path(ort.__file__).parent.glob("capi/libonnxruntime.so.*"))))
runtime.OrtGetApiBase.restype = P
base = C.cast(runtime.OrtGetApiBase(), C.POINTER(P))
api = C.cast(C.CFUNCTYPE(P, C.c_uint32)(base[0])(25), C.POINTER(P))
message = C.CFUNCTYPE(C.c_char_p, P)(api[2])
library = C.CDLL(PATH)
create = C.CFUNCTYPE(P, C.c_char_p, P, P, P, S, P)(("CreateEpFactories", library))
# Slots of OrtEpFactory, and the arguments after the factory itself.
CALLS = {"GetSupportedDevices": (3, P, S, P, S, P), "CreateEp": (4, P, P, S, P, P, P),
         "CreateAllocator": (9, P, P, P), "CreateDataTransfer": (11, P),
         "GetNumCustomOpDomains": (16, P)}
for name in (b"EpprofObserver", b"any"):
    made, count = (P * 2)(), S(7)
    assert not create(name, base, None, made, 2, C.byref(count)) and count.value
    for function, (slot, *types) in CALLS.items():
        address = C.cast(made[0], C.POINTER(P))[slot]
        if address is None: continue
        call = C.CFUNCTYPE(P, P, *types)(address)
        said = message(call(made[0], *(None if t is P else 0 for t in types)))
        assert said == f"{function} was called with a null pointer".encode(), (function, said)
place, room, call = S(7), (P * 2)(), C.CFUNCTYPE(P, P, P, S, P, S, P)
call = call(C.cast(made[0], C.POINTER(P))[3])
for arguments in ((None, 2, room, 2), (room, 0, None, 2)):
    assert b"null pointer" in message(call(made[0], *arguments, C.byref(place)))
    assert place.value == 0
assert not create(b"any", (P * 2)(), None, made, 2, C.byref(count))  # a runtime without functions
version = C.CFUNCTYPE(P)(lambda: None)
nameless = (P * 2)(base[0], C.cast(version, P).value)
assert message(create(b"any", nameless, None, made, 2, C.byref(count)))
""")


def test_a_copy_of_the_library_is_refused_with_both_paths(tmp_path):
    run(f"""
import shutil
copy = {str(tmp_path / "copied.so")!r}
shutil.copy(PATH, copy)
ort.register_execution_provider_library("copy", copy)
refused(lambda: ort.InferenceSession(models.chain(), options()), copy, "get_library_path()")
register()
refused(lambda: ort.InferenceSession(models.chain(), options(ours()[0])), copy)
check(ort.InferenceSession(models.chain(), options(ours()[1])))
from epprof_nb import _native, ep
for entry in (OURS, ep.provider("host")):
    refused(lambda: ort.InferenceSession(models.chain(), providers=[entry, CPU]),
            copy, _native.__file__, "unregister_execution_provider_library")
ort.unregister_execution_provider_library("copy")
check(ort.InferenceSession(models.chain(), providers=[OURS, CPU]))
""")


@pytest.mark.skipif(
    tuple(int(n) for n in onnxruntime.__version__.split(".")[:2]) < (1, 26),
    reason="graphs need ONNX Runtime 1.26",
)
@pytest.mark.release_independent
def test_sessions_with_graphs_outlive_the_registration_of_their_memory():
    done = run("""
def graphs():
    return check(ort.InferenceSession(models.chain(), options(enable_cuda_graph="1")))
for names in (["one"], ["one", "two"]):
    for name in names: register(name)
    made, new = graphs(), graphs()
    for _ in range(3): check(made)
    ort.unregister_execution_provider_library("one")
    for factor in (1, 2):
        feed = {"x": x[:1] * factor}
        expected = ort.InferenceSession(models.chain(), providers=[CPU]).run(None, feed)[0]
        for session in (made, new):
            check(session)
            np.testing.assert_allclose(session.run(None, feed)[0], expected, rtol=1e-6)
    for name in names[1:]: ort.unregister_execution_provider_library(name)
    register()
    for _ in range(4): check(made)
    ort.unregister_execution_provider_library(OURS)
""")
    assert "was unregistered" in done.stderr
    assert "Register it again" in done.stderr


# A program without Python that loads the library as ONNX Runtime does. Its function tables have
# what the library calls before it needs Python: statuses and one event.
WITHOUT_PYTHON = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void *api[500], *ep_api[100];
static const char* message;
static void* create_status(int code, const char* text) { message = strdup(text); return &message; }
static const char* error_message(void* status) { return message; }
static void release(void* object) {}
static const char* version = "1.25.0";
static int lacks_api, lacks_plugins, has_other_events;
static const void* get_ep_api(void) { return lacks_plugins ? 0 : ep_api; }
static void* create_event(int c, int64_t p, int64_t t, const char* n, int64_t at, int64_t d,
                          const char* const* k, const char* const* v, size_t count, void** made) {
  *made = &message;
  return 0;
}
static void* category(void* event, int32_t* out) { *out = 1; return 0; }
static void* name(void* event, const char** out) { *out = "probe"; return 0; }
static void* timestamp(void* event, int64_t* out) { *out = 1234 + has_other_events; return 0; }
static void* duration(void* event, int64_t* out) { *out = 56; return 0; }
static void* argument(void* event, const char* key, const char** out) { *out = "Add"; return 0; }
static void* get_api(uint32_t wanted) { return lacks_api ? 0 : api; }
static const char* get_version(void) { return version; }

int main(int count, char** arguments) {
  if (count > 2) version = arguments[2];
  lacks_api = count > 3 && !strcmp(arguments[3], "no API");
  lacks_plugins = count > 3 && !strcmp(arguments[3], "no plugins");
  has_other_events = count > 3 && !strcmp(arguments[3], "other events");
  void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) return puts(dlerror()), 1;
  api[0] = create_status, api[2] = error_message, api[93] = release, api[317] = get_ep_api;
  ep_api[65] = create_event, ep_api[66] = release, ep_api[67] = category, ep_api[68] = name;
  ep_api[69] = timestamp, ep_api[70] = duration, ep_api[71] = argument;
  void* base[] = {get_api, get_version};
  void* (*create)(const char*, void*, void*, void**, size_t, size_t*) =
      dlsym(library, "CreateEpFactories");
  void* factories[2];
  size_t made = 7;
  if (count > 2) {
    void* status = create("any", base, 0, factories, 2, &made);
    printf("%d %zu %s", status != 0, made, status ? message : "");
    return 0;
  }
  if (create("any", base, 0, factories, 0, &made) || made) return puts("without room"), 1;
  if (create("any", base, 0, factories, 2, 0) || create("any", 0, 0, factories, 2, &made)) return 1;
  void* status = create(0, base, 0, factories, 2, &made);
  printf("%d %zu %s", status != 0, made, status ? message : "");
  return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Run that program with arguments, and return what it prints."""
    compiler = library.compiler()
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("program")
    (folder / "program.c").write_text(WITHOUT_PYTHON)
    subprocess.run(
        [compiler, "-x", "c", "program.c", "-o", "program", "-ldl", "-w"], cwd=folder, check=True
    )
    core = importlib.util.find_spec("epprof_nb._native").origin

    def run_it(*arguments):
        done = subprocess.run(
            ["./program", core, *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run_it


REFUSALS = {
    ("1.24.4",): "1.25 is the first release",
    ("0.9",): "1.25 is the first release",
    ("not a version",): "1.25 is the first release",
    ("1.99.0", "no plugins"): "does not support plugin execution providers",
    ("2.0.0", "other events"): "is not supported (",
}


@pytest.mark.parametrize("arguments", REFUSALS)
def test_a_runtime_that_does_not_fit_gets_a_status_with_the_reason(program, arguments):
    said = program(*arguments)
    assert said.startswith("1 0 ")
    assert REFUSALS[arguments] in said


def test_a_runtime_without_functions_gets_no_provider(program):
    assert program("1.31.1", "no API") == "0 0 "


def test_a_program_without_python_gets_a_status_that_says_so(program):
    said = program()
    assert said.startswith("1 0 the kernels of EpprofExecutionProvider are Python functions")
    assert "initialize Python" in said
