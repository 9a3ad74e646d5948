#include "python/convert.h"

#include <stdlib.h>

PyObject* raise_message(char* message) {
  PyErr_SetString(PyExc_RuntimeError, message);
  free(message);
  return NULL;
}

PyObject* to_utf8(PyObject* text) {
  return PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
}

int to_u32(PyObject* value, uint32_t* number) {
  unsigned long parsed = PyLong_AsUnsignedLong(value);
  if (parsed == (unsigned long)-1 && PyErr_Occurred()) return -1;
  *number = (uint32_t)parsed;
  return 0;
}

int to_u64(PyObject* value, uint64_t* number) {
  *number = PyLong_AsUnsignedLongLong(value);
  return *number == (uint64_t)-1 && PyErr_Occurred() ? -1 : 0;
}

PyObject* columns_to_dict(epprof_columns* columns) {
  PyObject* dict = PyDict_New();
  for (size_t i = 0; dict && i < epprof_columns_count(columns); i++) {
    PyObject* value = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)epprof_columns_bytes(columns, i));
    if (value) epprof_columns_copy(columns, i, PyBytes_AsString(value));
    if (!value || PyDict_SetItemString(dict, epprof_columns_name(columns, i), value) < 0) {
      Py_CLEAR(dict);
    }
    Py_XDECREF(value);
  }
  epprof_columns_free(columns);
  return dict;
}

PyObject* add_count(PyObject* dict, const char* key, uint64_t count) {
  if (!dict) return NULL;
  PyObject* value = PyLong_FromUnsignedLongLong(count);
  if (!value || PyDict_SetItemString(dict, key, value) < 0) Py_CLEAR(dict);
  Py_XDECREF(value);
  return dict;
}
