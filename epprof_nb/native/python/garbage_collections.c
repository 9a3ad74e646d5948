// A callback on the pauses of Python's garbage collector, for `gc.callbacks`. It is a C function, so
// that it allocates no containers and no signal handler runs inside of it.
#include "python/convert.h"

// Protected by the GIL.
static uint32_t name, young_kind, full_kind;
static int64_t pause_start;  // 0: none has begun

static int is_young(PyObject* info) {
  PyObject* number = PyDict_Check(info) ? PyDict_GetItemString(info, "generation") : NULL;
  long generation = number ? PyLong_AsLong(number) : -1;
  PyErr_Clear();
  return generation == 0 || generation == 1;
}

static PyObject* on_collection(PyObject* Py_UNUSED(m), PyObject* const* args, Py_ssize_t count) {
  if (count < 2 || !epprof_recording_ops() || !PyUnicode_Check(args[0])) {
    pause_start = 0;
    Py_RETURN_NONE;
  }
  if (PyUnicode_CompareWithASCIIString(args[0], "start") == 0) {
    pause_start = epprof_now_ns();
  } else if (pause_start) {
    int young = is_young(args[1]);
    epprof_gc_pause(name, young ? young_kind : full_kind, pause_start, young);
    pause_start = 0;
  }
  Py_RETURN_NONE;
}

static PyObject* set_collection_ops(PyObject* Py_UNUSED(m), PyObject* args) {
  if (!PyArg_ParseTuple(args, "III", &name, &young_kind, &full_kind)) return NULL;
  Py_RETURN_NONE;
}

PyMethodDef collection_functions[] = {
    {"on_collection", (PyCFunction)(void (*)(void))on_collection, METH_FASTCALL, NULL},
    {"set_collection_ops", set_collection_ops, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
