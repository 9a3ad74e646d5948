// Callbacks on the suspension of generators and coroutines. They are C functions so that no signal
// handler runs inside them. A KeyboardInterrupt there would not reach the generator's own `try`.
#include "python/convert.h"

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

static PyObject* watch_frame(PyObject* Py_UNUSED(m), PyObject* frame) {
  epprof_watch_frame((uint64_t)(uintptr_t)frame);
  Py_RETURN_NONE;
}

static PyObject* unwatch_frames(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  epprof_unwatch_frames();
  Py_RETURN_NONE;
}

static long long attribute(PyObject* object, const char* name) {
  PyObject* value = PyObject_GetAttrString(object, name);
  long long number = value ? PyLong_AsLongLong(value) : -1;
  Py_XDECREF(value);
  return number;
}

// True if the frame returns because it yields: its last instruction is then YIELD_VALUE.
static int yields(PyObject* frame) {
  enum { kYieldValue = 86 };  // in 3.11, the only version with this profile function
  PyObject* code = (PyObject*)PyFrame_GetCode((PyFrameObject*)frame);
  PyObject* bytecode = PyObject_GetAttrString(code, "co_code");
  Py_DECREF(code);
  long long last = attribute(frame, "f_lasti");
  int result = bytecode && last >= 0 && last < PyBytes_Size(bytecode) &&
               (unsigned char)PyBytes_AsString(bytecode)[last] == kYieldValue;
  Py_XDECREF(bytecode);
  PyErr_Clear();
  return result;
}

static void unset_profile_function(void) {
  PyObject* set = PySys_GetObject("setprofile");
  PyObject* done = set ? PyObject_CallFunctionObjArgs(set, Py_None, NULL) : NULL;
  Py_XDECREF(done);
  PyErr_Clear();
}

static PyObject* on_profile_event(PyObject* Py_UNUSED(m), PyObject* const* args,
                                  Py_ssize_t count) {
  if (count != 3 || !PyUnicode_Check(args[1])) Py_RETURN_NONE;
  int64_t begin = epprof_cost_begin(EPPROF_COST_SUSPENSIONS);
  uint64_t frame = (uint64_t)(uintptr_t)args[0];
  if (epprof_is_watched(frame)) {
    if (PyUnicode_CompareWithASCIIString(args[1], "call") == 0) {
      epprof_resume(frame);
    } else if (PyUnicode_CompareWithASCIIString(args[1], "return") == 0) {
      if (yields(args[0])) {
        epprof_suspend(frame);
      } else {
        epprof_unwatch_frame(frame);
        epprof_frame_finished(frame);
      }
    }
  }
  if (!epprof_watched_frames()) unset_profile_function();
  epprof_cost_end(EPPROF_COST_SUSPENSIONS, begin);
  Py_RETURN_NONE;
}

#define FAST(function) (PyCFunction)(void (*)(void))function, METH_FASTCALL

PyMethodDef frame_functions[] = {
    {"on_yield", FAST(on_yield), NULL},
    {"on_resume", FAST(on_resume), NULL},
    {"on_throw", FAST(on_resume), NULL},
    {"on_return", FAST(on_return), NULL},
    {"on_profile_event", FAST(on_profile_event), NULL},
    {"watch_frame", watch_frame, METH_O, NULL},
    {"unwatch_frames", unwatch_frames, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
