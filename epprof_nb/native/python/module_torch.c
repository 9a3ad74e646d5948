// The functions of _native for PyTorch's operators, over nvtx/api.h and torch/api.h.
#include "python/convert.h"

#include "nvtx/api.h"
#include "torch/api.h"

static PyObject* switched(PyObject* value, void (*set)(int)) {
  int on = PyObject_IsTrue(value);
  if (on < 0) return NULL;
  set(on);
  Py_RETURN_NONE;
}

static PyObject* operators_record(PyObject* Py_UNUSED(m), PyObject* on) {
  return switched(on, epprof_operators_record);
}

static PyObject* operators_pause(PyObject* Py_UNUSED(m), PyObject* on) {
  return switched(on, epprof_operators_pause);
}

static PyObject* operators_backward(PyObject* Py_UNUSED(m), PyObject* value) {
  uint64_t parent;
  if (to_u64(value, &parent) < 0) return NULL;
  epprof_operators_backward(parent);
  Py_RETURN_NONE;
}

static PyObject* operators_seen(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromUnsignedLongLong(epprof_operators_seen());
}

static void append_text(const char* text, size_t length, void* data) {
  PyObject** list = data;
  if (!*list) return;
  PyObject* sizes = PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "backslashreplace");
  if (!sizes || PyList_Append(*list, sizes) < 0) Py_CLEAR(*list);
  Py_XDECREF(sizes);
}

static PyObject* operator_sizes(PyObject* Py_UNUSED(m), PyObject* value) {
  uint32_t first;
  if (to_u32(value, &first) < 0) return NULL;
  PyObject* list = PyList_New(0);
  epprof_operator_sizes(first, append_text, &list);
  return list;
}

static PyObject* torch_observe(PyObject* Py_UNUSED(m), PyObject* library) {
  PyObject* path = NULL;
  if (!PyUnicode_FSConverter(library, &path)) return NULL;
  int observed = epprof_torch_observe(PyBytes_AsString(path));
  Py_DECREF(path);
  return PyBool_FromLong(observed);
}

static PyObject* torch_enable(PyObject* Py_UNUSED(m), PyObject* on) {
  return switched(on, epprof_torch_enable);
}

PyMethodDef torch_functions[] = {
    {"operators_record", operators_record, METH_O, NULL},
    {"operators_pause", operators_pause, METH_O, NULL},
    {"operators_backward", operators_backward, METH_O, NULL},
    {"operators_seen", operators_seen, METH_NOARGS, NULL},
    {"operator_sizes", operator_sizes, METH_O, NULL},
    {"torch_observe", torch_observe, METH_O, NULL},
    {"torch_enable", torch_enable, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
