// The functions of _native for delays on CUDA devices, over delays/api.h and cupti/api.h.
#include "python/convert.h"

#include "cupti/api.h"
#include "delays/api.h"

static PyObject* follow_streams(PyObject* Py_UNUSED(m), PyObject* follow) {
  int yes = PyObject_IsTrue(follow);
  if (yes < 0) return NULL;
  Py_BEGIN_ALLOW_THREADS
  epprof_cupti_follow_streams(yes);
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

static void add_stream(const struct epprof_launched_stream* stream, void* list) {
  PyObject* correlations = PyList_New(0);
  for (size_t i = 0; correlations && i < stream->correlation_count; i++) {
    PyObject* number = PyLong_FromUnsignedLong(stream->correlations[i]);
    if (!number || PyList_Append(correlations, number) < 0) Py_CLEAR(correlations);
    Py_XDECREF(number);
  }
  PyObject* row = correlations ? Py_BuildValue("KNNN", (unsigned long long)stream->id,
                                               PyBool_FromLong(stream->is_new),
                                               PyBool_FromLong(stream->exists), correlations)
                               : NULL;
  if (row) PyList_Append(list, row);
  Py_XDECREF(row);
}

static PyObject* launched_streams(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  if (!epprof_cupti_follows_streams()) Py_RETURN_NONE;
  PyObject* list = PyList_New(0);
  if (list) epprof_each_launched_stream(add_stream, list);
  if (PyErr_Occurred()) Py_CLEAR(list);
  return list;
}

static PyObject* begin_delays(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  char* failed;
  Py_BEGIN_ALLOW_THREADS
  failed = epprof_delays_begin();
  Py_END_ALLOW_THREADS
  if (failed) return raise_message(failed);
  Py_RETURN_NONE;
}

static PyObject* end_delays(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  Py_BEGIN_ALLOW_THREADS
  epprof_delays_end();
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

static PyObject* launch_delay(PyObject* Py_UNUSED(m), PyObject* args) {
  unsigned long long stream, length_ns;
  unsigned int tag;
  if (!PyArg_ParseTuple(args, "KIK", &stream, &tag, &length_ns)) return NULL;
  enum epprof_delay_result result;
  int cuda_result;
  Py_BEGIN_ALLOW_THREADS  // it waits for room in a full stream, whose work may need Python
  result = epprof_delays_launch(stream, tag, length_ns, &cuda_result);
  Py_END_ALLOW_THREADS
  return Py_BuildValue("ii", (int)result, cuda_result);
}

static PyObject* wait_for_delays(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  char* failed;
  Py_BEGIN_ALLOW_THREADS
  failed = epprof_delays_wait();
  Py_END_ALLOW_THREADS
  if (failed) return raise_message(failed);
  Py_RETURN_NONE;
}

static PyObject* take_delays(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  enum { ROOM = 256 };
  uint32_t tags[ROOM];
  uint64_t lengths[ROOM];
  PyObject* list = PyList_New(0);
  for (size_t taken = ROOM; list && taken == ROOM;) {
    taken = epprof_delays_take(tags, lengths, ROOM);
    for (size_t i = 0; list && i < taken; i++) {
      PyObject* pair = Py_BuildValue("IK", tags[i], (unsigned long long)lengths[i]);
      if (!pair || PyList_Append(list, pair) < 0) Py_CLEAR(list);
      Py_XDECREF(pair);
    }
  }
  return list;
}

PyMethodDef delay_functions[] = {
    {"follow_streams", follow_streams, METH_O, NULL},
    {"launched_streams", launched_streams, METH_NOARGS, NULL},
    {"begin_delays", begin_delays, METH_NOARGS, NULL},
    {"end_delays", end_delays, METH_NOARGS, NULL},
    {"launch_delay", launch_delay, METH_VARARGS, NULL},
    {"wait_for_delays", wait_for_delays, METH_NOARGS, NULL},
    {"take_delays", take_delays, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
