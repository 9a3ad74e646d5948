// The functions of _native for samples of the host's Python code, over samples/api.h.
#define _GNU_SOURCE
#include "python/convert.h"

#include <dlfcn.h>

#include "samples/api.h"

static PyObject* prepare_samples(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  void* (*this_thread)(void) =
      (void* (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
  void* (*main_interpreter)(void) = (void* (*)(void))dlsym(RTLD_DEFAULT, "PyInterpreterState_Main");
  const char* why_not = epprof_samples_prepare(
      (void* (*)(void*))dlsym(RTLD_DEFAULT, "PyInterpreterState_ThreadHead"),
      main_interpreter ? main_interpreter() : NULL, dlsym(RTLD_DEFAULT, "PyCode_Type"),
      this_thread ? this_thread() : NULL);
  if (!why_not) Py_RETURN_NONE;
  return PyUnicode_FromString(why_not);
}

static PyObject* start_samples(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  const char* why_not = epprof_samples_start();
  if (!why_not) Py_RETURN_NONE;
  return PyUnicode_FromString(why_not);
}

static PyObject* stop_samples(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  Py_BEGIN_ALLOW_THREADS
  epprof_samples_stop();
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

static PyObject* end_samples(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  Py_BEGIN_ALLOW_THREADS
  epprof_samples_end();
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

static PyObject* drain_samples(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  uint64_t counts[4];
  PyObject* dict = columns_to_dict(epprof_samples_drain(counts));
  static const char* const names[] = {"exact", "outer", "inconsistent", "dropped"};
  for (int i = 0; i < 4; i++) dict = add_count(dict, names[i], counts[i]);
  return dict;
}

PyMethodDef sample_functions[] = {
    {"prepare_samples", prepare_samples, METH_NOARGS, NULL},
    {"start_samples", start_samples, METH_NOARGS, NULL},
    {"stop_samples", stop_samples, METH_NOARGS, NULL},
    {"end_samples", end_samples, METH_NOARGS, NULL},
    {"drain_samples", drain_samples, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
