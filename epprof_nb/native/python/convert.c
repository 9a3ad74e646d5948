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

// The memory of a column, which a memoryview exports without a copy.
typedef struct {
  PyObject_HEAD
  const void* data;
  size_t bytes;
  void* owner;
} Column;

static int column_buffer(PyObject* object, Py_buffer* view, int flags) {
  Column* column = (Column*)object;
  void* data = (void*)(column->data ? column->data : "");
  return PyBuffer_FillInfo(view, object, data, (Py_ssize_t)column->bytes, 1, flags);
}

static void column_dealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  epprof_column_free(((Column*)object)->owner);
  release(object);
  Py_DECREF((PyObject*)type);
}

static PyType_Slot column_slots[] = {
    {Py_tp_dealloc, column_dealloc}, {Py_bf_getbuffer, column_buffer}, {0, NULL}};

static PyType_Spec column_spec = {
    .name = "epprof_nb._native.Column",
    .basicsize = sizeof(Column),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = column_slots,
};

static PyTypeObject* column_type;  // protected by the GIL

static PyObject* column_view(epprof_columns* columns, size_t i) {
  if (!column_type && !(column_type = (PyTypeObject*)PyType_FromSpec(&column_spec))) return NULL;
  allocfunc allocate = (allocfunc)PyType_GetSlot(column_type, Py_tp_alloc);
  Column* column = (Column*)allocate(column_type, 0);
  if (!column) return NULL;
  column->owner = epprof_columns_take(columns, i, &column->data, &column->bytes);
  PyObject* view = column->owner ? PyMemoryView_FromObject((PyObject*)column) : PyErr_NoMemory();
  Py_DECREF((PyObject*)column);
  return view;
}

PyObject* columns_to_dict(epprof_columns* columns) {
  PyObject* dict = PyDict_New();
  for (size_t i = 0; dict && i < epprof_columns_count(columns); i++) {
    PyObject* value = column_view(columns, i);
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
