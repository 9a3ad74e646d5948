// The function of _native that follows the module calls whose nodes run in PyTorch's backward passes.
// It is in C because it runs between the nodes of each pass.
#include "python/convert.h"

enum { kCategory = 6 };  // kFrameworkCall of core/records.h

// A call is a tuple (the call that contains it or None, the ops of the module). The ops are a tuple
// (name, kind of its forward ops, of its recomputations, of its backward ops). An open list
// alternates calls, outermost first, and their op ids.

static PyObject* list_of_thread(PyObject* threads) {  // borrowed
  PyObject* key = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
  if (!key) return NULL;
  PyObject* list = PyDict_GetItemWithError(threads, key);
  if (!list && !PyErr_Occurred()) {
    PyObject* made = PyList_New(0);
    if (made && PyDict_SetItem(threads, key, made) == 0) list = made;
    Py_XDECREF(made);
  }
  Py_DECREF(key);
  return list;
}

// The number of open calls from the outermost one to this one; 0 if it is not open.
static Py_ssize_t open_calls_to(PyObject* list, PyObject* call) {
  for (Py_ssize_t i = PyList_Size(list) / 2; i > 0; i--) {
    if (PyList_GetItem(list, 2 * (i - 1)) == call) return i;
  }
  return 0;
}

static int end_calls(PyObject* list, Py_ssize_t kept) {
  for (Py_ssize_t i = PyList_Size(list) / 2; i > kept; i--) {
    uint64_t op_id;
    PyObject* value = PyList_GetItem(list, 2 * i - 1);
    if (!value || to_u64(value, &op_id) < 0) return -1;
    ep_pop(op_id);
    if (PyList_SetSlice(list, 2 * (i - 1), 2 * i, NULL) < 0) return -1;
  }
  return 0;
}

static int begin_call(PyObject* list, PyObject* call, uint64_t parent) {
  uint32_t name, kind;
  PyObject* ops = PyTuple_GetItem(call, 1);
  PyObject* name_id = ops ? PyTuple_GetItem(ops, 0) : NULL;
  PyObject* kind_id = name_id ? PyTuple_GetItem(ops, 3) : NULL;
  if (!kind_id || to_u32(name_id, &name) < 0 || to_u32(kind_id, &kind) < 0) return -1;
  PyObject* op_id = PyLong_FromUnsignedLongLong(ep_push_worker(name, kCategory, kind, parent));
  int failed = !op_id || PyList_Append(list, call) < 0 || PyList_Append(list, op_id) < 0;
  Py_XDECREF(op_id);
  return failed ? -1 : 0;
}

static int switch_to(PyObject* threads, uint64_t parent, PyObject* wanted) {
  if (wanted != Py_None && !PyTuple_Check(wanted)) {
    PyErr_SetString(PyExc_TypeError, "a call is a tuple or None");
    return -1;
  }
  PyObject* list = list_of_thread(threads);
  if (!list) return -1;
  // The calls that are not open yet, from `wanted` outwards.
  Py_ssize_t kept = 0, added = 0;
  for (PyObject* call = wanted; call != Py_None && !kept; call = PyTuple_GetItem(call, 0)) {
    if (!call) return -1;
    kept = open_calls_to(list, call);
    added += !kept;
  }
  if (end_calls(list, kept) < 0) return -1;
  for (; added > 0; added--) {
    PyObject* call = wanted;
    for (Py_ssize_t i = 1; i < added; i++) call = PyTuple_GetItem(call, 0);
    if (begin_call(list, call, parent) < 0) return -1;
  }
  return 0;
}

static PyObject* switch_calls(PyObject* Py_UNUSED(m), PyObject* const* args, Py_ssize_t count) {
  uint64_t parent;
  if (count != 5 || !PyDict_Check(args[0]) || !PyDict_Check(args[2])) {
    PyErr_SetString(PyExc_TypeError,
                    "switch_calls() takes a dict, an op id, a dict, a function and a gradient");
    return NULL;
  }
  if (to_u64(args[1], &parent) < 0) return NULL;
  PyObject* node = PyObject_CallNoArgs(args[3]);
  if (!node) return NULL;
  PyObject* call = PyDict_GetItemWithError(args[2], node);
  Py_DECREF(node);
  if (call ? switch_to(args[0], parent, call) < 0 : PyErr_Occurred() != NULL) return NULL;
  Py_RETURN_NONE;
}

PyMethodDef call_functions[] = {
    {"switch_calls", (PyCFunction)(void (*)(void))switch_calls, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
