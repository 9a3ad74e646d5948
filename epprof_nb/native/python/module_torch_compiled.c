// The function of _native that switches the ops of modules between the kernels of compiled code.
// It is in C because generated code calls it before each kernel.
#include "python/convert.h"

enum { kCategory = 6 };  // kFrameworkCall of core/records.h

// The open list alternates ops, outermost first, and their ids. An op is a tuple (name, kind).

static int end_ops(PyObject* open, Py_ssize_t kept) {
  Py_ssize_t size = PyList_Size(open);
  for (Py_ssize_t i = size / 2; i > kept; i--) {
    uint64_t op_id;
    PyObject* value = PyList_GetItem(open, 2 * i - 1);
    if (!value || to_u64(value, &op_id) < 0) return -1;
    epprof_pop(op_id);
  }
  return PyList_SetSlice(open, 2 * kept, size, NULL);
}

static int begin_op(PyObject* open, PyObject* op, uint64_t parent) {
  uint32_t name, kind;
  PyObject* name_id = PyTuple_GetItem(op, 0);
  PyObject* kind_id = name_id ? PyTuple_GetItem(op, 1) : NULL;
  if (!kind_id || to_u32(name_id, &name) < 0 || to_u32(kind_id, &kind) < 0) return -1;
  uint64_t begun = parent ? epprof_push_worker(name, kCategory, kind, parent)
                          : epprof_push(name, kCategory, kind, NULL, 0);
  PyObject* op_id = PyLong_FromUnsignedLongLong(begun);
  int failed = !op_id || PyList_Append(open, op) < 0 || PyList_Append(open, op_id) < 0;
  Py_XDECREF(op_id);
  return failed ? -1 : 0;
}

static int switch_to(PyObject* open, PyObject* ops, uint64_t parent) {
  if (!PyTuple_Check(ops)) {
    PyErr_SetString(PyExc_TypeError, "the ops of a line are a tuple");
    return -1;
  }
  Py_ssize_t size = PyTuple_Size(ops), opened = PyList_Size(open) / 2, kept = 0;
  while (kept < size && kept < opened &&
         PyList_GetItem(open, 2 * kept) == PyTuple_GetItem(ops, kept)) {
    kept++;
  }
  if (kept < opened && end_ops(open, kept) < 0) return -1;
  for (; kept < size; kept++) {
    if (begin_op(open, PyTuple_GetItem(ops, kept), parent) < 0) return -1;
  }
  return 0;
}

static PyObject* switch_ops(PyObject* Py_UNUSED(m), PyObject* const* args, Py_ssize_t count) {
  uint64_t parent;
  if (count != 5 || !PyList_Check(args[0]) || !PyDict_Check(args[1])) {
    PyErr_SetString(PyExc_TypeError,
                    "switch_ops() takes a list, a dict, a function, an op id and a line");
    return NULL;
  }
  if (to_u64(args[3], &parent) < 0) return NULL;
  PyObject* ops = PyDict_GetItemWithError(args[1], args[4]);
  if (!ops && PyErr_Occurred()) return NULL;
  Py_XINCREF(ops);
  if (!ops) ops = PyObject_CallFunctionObjArgs(args[2], args[4], NULL);
  if (!ops) return NULL;
  int failed = switch_to(args[0], ops, parent);
  Py_DECREF(ops);
  if (failed < 0) return NULL;
  Py_RETURN_NONE;
}

PyMethodDef compiled_functions[] = {
    {"switch_ops", (PyCFunction)(void (*)(void))switch_ops, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
