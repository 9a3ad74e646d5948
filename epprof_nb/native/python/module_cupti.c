// The functions of _native over cupti/api.h.
#include "python/convert.h"

#include <stdlib.h>
#include <string.h>

#include "cupti/api.h"

static PyObject* cupti_load(PyObject* Py_UNUSED(m), PyObject* args) {
  const char *path, *driver;
  uint32_t version;
  if (!PyArg_ParseTuple(args, "ss", &path, &driver)) return NULL;
  char* failed = epprof_cupti_load(path, driver, &version);
  return failed ? raise_message(failed) : PyLong_FromUnsignedLong(version);
}

static PyObject* cupti_set_layout(PyObject* Py_UNUSED(m), PyObject* args) {
  const char* layout;
  Py_ssize_t bytes;
  if (!PyArg_ParseTuple(args, "y#", &layout, &bytes)) return NULL;
  char* failed = epprof_cupti_set_layout(layout, (size_t)bytes);
  if (failed) return raise_message(failed);
  Py_RETURN_NONE;
}

static PyObject* cupti_configure(PyObject* Py_UNUSED(m), PyObject* args, PyObject* kwargs) {
  static char* names[] = {"buffer_bytes", "buffers", "max_records", NULL};
  Py_ssize_t bytes;
  unsigned int buffers;
  unsigned long long records;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$nIK", names, &bytes, &buffers, &records)) {
    return NULL;
  }
  epprof_cupti_configure((size_t)bytes, buffers, records);
  Py_RETURN_NONE;
}

static PyObject* cupti_start(PyObject* Py_UNUSED(m), PyObject* args, PyObject* kwargs) {
  static char* names[] = {"kinds", "callbacks", "all_calls", "external", "part", NULL};
  const char* kinds;
  Py_ssize_t bytes;
  int callbacks, all_calls, external;
  unsigned int part;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$y#pppI", names, &kinds, &bytes, &callbacks,
                                   &all_calls, &external, &part)) {
    return NULL;
  }
  struct epprof_cupti_started started;
  char* failed;
  Py_BEGIN_ALLOW_THREADS
  failed = epprof_cupti_start((const uint32_t*)kinds, (size_t)bytes / 4, callbacks, all_calls,
                          external, part, &started);
  Py_END_ALLOW_THREADS
  if (failed) return raise_message(failed);
  return Py_BuildValue("{sIsIsIsI}", "subscribed", started.subscribed, "subscribe_result",
                       started.subscribe_result, "clock_result", started.clock_result,
                       "failed_kinds", started.failed_kinds);
}

static PyObject* cupti_has_callbacks(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyBool_FromLong(epprof_cupti_has_callbacks());
}

static PyObject* cupti_stop(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  Py_BEGIN_ALLOW_THREADS
  epprof_cupti_stop();
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

static PyObject* cupti_finalize(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  Py_BEGIN_ALLOW_THREADS
  epprof_cupti_finalize();
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

static PyObject* cupti_sync(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  uint64_t failed[16][2];
  size_t count;
  Py_BEGIN_ALLOW_THREADS
  count = epprof_cupti_sync(failed, 16);
  Py_END_ALLOW_THREADS
  PyObject* list = PyList_New(0);
  for (size_t i = 0; list && i < count; i++) {
    PyObject* pair = Py_BuildValue("KK", failed[i][0], failed[i][1]);
    if (!pair || PyList_Append(list, pair) < 0) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  return list;
}

static PyObject* cuda_error(PyObject* Py_UNUSED(m), PyObject* value) {
  long result = PyLong_AsLong(value);
  if (result == -1 && PyErr_Occurred()) return NULL;
  const char *name, *text;
  epprof_cuda_error((int)result, &name, &text);
  return Py_BuildValue("ss", name, text);
}

static PyObject* cupti_pending_records(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromLongLong(epprof_cupti_pending_records());
}

static PyObject* cupti_flush(PyObject* Py_UNUSED(m), PyObject* args, PyObject* kwargs) {
  static char* names[] = {"forced", NULL};
  int forced;
  uint32_t result;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$p", names, &forced)) return NULL;
  Py_BEGIN_ALLOW_THREADS
  result = epprof_cupti_flush(forced);
  Py_END_ALLOW_THREADS
  return PyLong_FromUnsignedLong(result);
}

static PyObject* cupti_first_launch(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  int launched;
  Py_BEGIN_ALLOW_THREADS
  launched = epprof_cupti_first_launch();
  Py_END_ALLOW_THREADS
  return PyBool_FromLong(launched);
}

static PyObject* cuda_started(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyBool_FromLong(epprof_cuda_started());
}

static PyObject* cupti_read_clock(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  int64_t times[3];
  if (!epprof_cupti_read_clock(times)) Py_RETURN_NONE;
  return Py_BuildValue("LLL", (long long)times[0], (long long)times[1], (long long)times[2]);
}

static PyObject* cupti_drain(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  uint64_t counts[5];
  PyObject* dict = columns_to_dict(epprof_cupti_drain(counts));
  dict = add_count(dict, "lost", counts[0]);
  dict = add_count(dict, "unfinished", counts[1]);
  dict = add_count(dict, "dropped", counts[3]);
  return add_count(dict, "decode_ns", counts[4]);
}

static PyObject* cupti_graph_nodes(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return columns_to_dict(epprof_cupti_graph_nodes());
}

static PyObject* cupti_state(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  uint64_t s[6];
  epprof_cupti_state(s);
  return Py_BuildValue("{sKsKsKsKsKsK}", "running", s[0], "buffers_out", s[1], "buffer_bytes",
                       s[2], "buffers_completed", s[3], "captures_open", s[4], "contexts", s[5]);
}

static PyObject* cupti_callback_name(PyObject* Py_UNUSED(m), PyObject* args) {
  unsigned int domain, cbid;
  if (!PyArg_ParseTuple(args, "II", &domain, &cbid)) return NULL;
  const char* name = epprof_cupti_callback_name(domain, cbid);
  if (!name) Py_RETURN_NONE;
  return PyUnicode_FromString(name);
}

static PyObject* decode(PyObject* Py_UNUSED(m), PyObject* args) {
  const char *raw, *layout;
  Py_ssize_t raw_bytes, layout_bytes;
  uint64_t counts[5];
  if (!PyArg_ParseTuple(args, "y#y#", &raw, &raw_bytes, &layout, &layout_bytes)) return NULL;
  epprof_columns* columns = epprof_decode(raw, (size_t)raw_bytes, layout, (size_t)layout_bytes, counts);
  if (!columns) {
    PyErr_SetString(PyExc_ValueError, "The layout is not one of this version of the native core. "
                                      "Pack it with `packed_layout` of the same installation.");
    return NULL;
  }
  PyObject* dict = columns_to_dict(columns);
  dict = add_count(dict, "unfinished", counts[1]);
  dict = add_count(dict, "decoded", counts[2]);
  dict = add_count(dict, "bytes_walked", counts[3]);
  return add_count(dict, "decode_ns", counts[4]);
}

PyMethodDef cupti_functions[] = {
    {"cupti_load", cupti_load, METH_VARARGS, NULL},
    {"cupti_set_layout", cupti_set_layout, METH_VARARGS, NULL},
    {"cupti_configure", KEYWORDS(cupti_configure), NULL},
    {"cupti_start", KEYWORDS(cupti_start), NULL},
    {"cupti_stop", cupti_stop, METH_NOARGS, NULL},
    {"cupti_finalize", cupti_finalize, METH_NOARGS, NULL},
    {"cupti_has_callbacks", cupti_has_callbacks, METH_NOARGS, NULL},
    {"cupti_sync", cupti_sync, METH_NOARGS, NULL},
    {"cuda_error", cuda_error, METH_O, NULL},
    {"cupti_pending_records", cupti_pending_records, METH_NOARGS, NULL},
    {"cupti_flush", KEYWORDS(cupti_flush), NULL},
    {"cupti_first_launch", cupti_first_launch, METH_NOARGS, NULL},
    {"cuda_started", cuda_started, METH_NOARGS, NULL},
    {"cupti_read_clock", cupti_read_clock, METH_NOARGS, NULL},
    {"cupti_drain", cupti_drain, METH_NOARGS, NULL},
    {"cupti_graph_nodes", cupti_graph_nodes, METH_NOARGS, NULL},
    {"cupti_state", cupti_state, METH_NOARGS, NULL},
    {"cupti_callback_name", cupti_callback_name, METH_VARARGS, NULL},
    {"decode", decode, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
