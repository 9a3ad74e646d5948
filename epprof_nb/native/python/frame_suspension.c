// Callbacks on the suspension of generators and coroutines. They are C functions so that no signal
// handler runs inside them. A KeyboardInterrupt there would not reach the generator's own `try`.
#define _GNU_SOURCE
#include "python/convert.h"

#include <dlfcn.h>

#define FAST(function) (PyCFunction)(void (*)(void))function

// -- Python 3.12 and up: callbacks of sys.monitoring, called with the code object first --------

// The frame of the event, which is the calling frame, because a C function has none. 0: the calling
// frame runs other code.
static uint64_t event_frame(PyObject* const* args, Py_ssize_t count) {
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame || count < 1) return 0;
  PyObject* code = (PyObject*)PyFrame_GetCode(frame);
  Py_DECREF(code);  // the frame owns it
  return code == args[0] ? (uint64_t)(uintptr_t)frame : 0;
}

static PyObject* change_event_frame(PyObject* const* args, Py_ssize_t count,
                                    void (*change)(uint64_t frame)) {
  if (!epprof_recording_ops()) Py_RETURN_NONE;
  int64_t begin = epprof_cost_begin(EPPROF_COST_SUSPENSIONS);
  uint64_t frame = event_frame(args, count);
  if (frame) change(frame);
  epprof_cost_end(EPPROF_COST_SUSPENSIONS, begin);
  Py_RETURN_NONE;
}

static PyObject* on_yield(PyObject* Py_UNUSED(m), PyObject* const* args, Py_ssize_t count) {
  return change_event_frame(args, count, epprof_suspend);
}

static PyObject* on_resume(PyObject* Py_UNUSED(m), PyObject* const* args, Py_ssize_t count) {
  return change_event_frame(args, count, epprof_resume);
}

static PyObject* on_return(PyObject* Py_UNUSED(m), PyObject* const* args, Py_ssize_t count) {
  return change_event_frame(args, count, epprof_frame_finished);
}

// -- Python 3.11: a profile function ------------------------------------------------------------

// The limited API lacks these. `sys.setprofile` would copy the local variables of a frame to a
// dictionary and back at each event, which takes 20 times as long.
typedef int (*Hook)(PyObject* object, PyFrameObject* frame, int event, PyObject* value);
static struct {
  void (*set)(Hook hook, PyObject* object);
  int (*last_instruction)(PyFrameObject* frame);
  PyObject* (*bytecode)(PyCodeObject* code);
} python;
enum { kCall = 0, kReturn = 3 };  // PyTrace_CALL, PyTrace_RETURN

static int find_functions(void) {
  if (python.set) return 1;
  *(void**)&python.last_instruction = dlsym(RTLD_DEFAULT, "PyFrame_GetLasti");
  *(void**)&python.bytecode = dlsym(RTLD_DEFAULT, "PyCode_GetCode");
  if (!python.last_instruction || !python.bytecode) return 0;
  *(void**)&python.set = dlsym(RTLD_DEFAULT, "PyEval_SetProfile");
  return python.set != NULL;
}

// Number of calls and returns that the profile function has received on this thread.
static _Thread_local uint64_t events;

static PyObject* profile_events(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromUnsignedLongLong(events);
}

static PyObject* watched_frames(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromSize_t(epprof_watched_frames());
}

static PyObject* watch_frame(PyObject* Py_UNUSED(m), PyObject* frame) {
  epprof_watch_frame((uint64_t)(uintptr_t)frame);
  Py_RETURN_NONE;
}

// True if the frame returns because it yields: its last instruction is then YIELD_VALUE.
static int yields(PyFrameObject* frame) {
  enum { kYieldValue = 86 };  // in 3.11, the only version with this profile function
  PyCodeObject* code = PyFrame_GetCode(frame);
  PyObject* bytecode = python.bytecode(code);
  Py_DECREF(code);
  int last = python.last_instruction(frame);
  int result = bytecode && last >= 0 && last < PyBytes_Size(bytecode) &&
               (unsigned char)PyBytes_AsString(bytecode)[last] == kYieldValue;
  Py_XDECREF(bytecode);
  PyErr_Clear();
  return result;
}

static PyObject* on_profile_event(PyObject* m, PyObject* const* args, Py_ssize_t count);

// True if this thread's profile function is ours, and not one of other code that calls ours.
static int is_profile_function(void) {
  PyObject* getprofile = PySys_GetObject("getprofile");
  PyObject* current = getprofile ? PyObject_CallNoArgs(getprofile) : NULL;
  int result = current && PyCFunction_Check(current) &&
               PyCFunction_GetFunction(current) == FAST(on_profile_event);
  Py_XDECREF(current);
  PyErr_Clear();
  return result;
}

// Unsets the profile function once. If an audit hook forbids it, each attempt would print an error.
static void unset_profile_function(void) {
  static _Thread_local int is_refused;
  if (epprof_watched_frames()) {
    is_refused = 0;
  } else if (!is_refused && is_profile_function()) {
    python.set(NULL, NULL);
    is_refused = is_profile_function();
  }
}

static PyObject* unwatch_frames(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  epprof_unwatch_frames();
  unset_profile_function();
  Py_RETURN_NONE;
}

static int follow_frame(PyObject* Py_UNUSED(object), PyFrameObject* frame, int event,
                        PyObject* value) {
  if (event != kCall && event != kReturn) return 0;
  events++;
  int64_t begin = epprof_cost_begin(EPPROF_COST_SUSPENSIONS);
  uint64_t id = (uint64_t)(uintptr_t)frame;
  if (epprof_is_watched(id)) {
    if (event == kCall) {
      epprof_resume(id);
    } else if (value && yields(frame)) {
      epprof_suspend(id);
    } else {
      epprof_unwatch_frame(id);
      epprof_frame_finished(id);
    }
  }
  unset_profile_function();
  epprof_cost_end(EPPROF_COST_SUSPENSIONS, begin);
  return 0;
}

// The same for `sys.setprofile`: code that sets its own function may set the one before again.
static PyObject* on_profile_event(PyObject* Py_UNUSED(m), PyObject* const* args,
                                  Py_ssize_t count) {
  if (count != 3 || !PyUnicode_Check(args[1]) || !find_functions()) Py_RETURN_NONE;
  int is_call = PyUnicode_CompareWithASCIIString(args[1], "call") == 0;
  if (is_call || PyUnicode_CompareWithASCIIString(args[1], "return") == 0) {
    follow_frame(NULL, (PyFrameObject*)args[0], is_call ? kCall : kReturn, args[2]);
  }
  Py_RETURN_NONE;
}

// Sets the profile function of this thread; `object` is what `sys.getprofile` returns.
static PyObject* set_profile_function(PyObject* Py_UNUSED(m), PyObject* object) {
  if (!find_functions()) Py_RETURN_FALSE;
  python.set(follow_frame, object);
  return PyBool_FromLong(is_profile_function());
}

PyMethodDef frame_functions[] = {
    {"on_yield", FAST(on_yield), METH_FASTCALL, NULL},
    {"on_resume", FAST(on_resume), METH_FASTCALL, NULL},
    {"on_throw", FAST(on_resume), METH_FASTCALL, NULL},
    {"on_return", FAST(on_return), METH_FASTCALL, NULL},
    {"on_profile_event", FAST(on_profile_event), METH_FASTCALL, NULL},
    {"set_profile_function", set_profile_function, METH_O, NULL},
    {"profile_events", profile_events, METH_NOARGS, NULL},
    {"watched_frames", watched_frames, METH_NOARGS, NULL},
    {"watch_frame", watch_frame, METH_O, NULL},
    {"unwatch_frames", unwatch_frames, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
