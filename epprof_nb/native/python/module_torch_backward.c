// The functions of _native for calls of PyTorch's modules and for its backward passes, over torch/api.h.
#include "python/convert.h"

#include "torch/api.h"

static PyObject* engine_open(PyObject* Py_UNUSED(m), PyObject* library) {
  PyObject* path = NULL;
  if (!PyUnicode_FSConverter(library, &path)) return NULL;
  int known = epprof_engine_open(PyBytes_AsString(path));
  Py_DECREF(path);
  return PyBool_FromLong(known);
}

enum { kMostEdges = 16 };

static PyObject* engine_check_node(PyObject* Py_UNUSED(m), PyObject* args) {
  PyObject *node, *edges;
  unsigned long long number;
  uint64_t numbers[kMostEdges];
  if (!PyArg_ParseTuple(args, "OKO!", &node, &number, &PyList_Type, &edges)) return NULL;
  PyObject* size = PyObject_GetAttrString((PyObject*)Py_TYPE(node), "__basicsize__");
  Py_ssize_t bytes = size ? PyLong_AsSsize_t(size) - (Py_ssize_t)sizeof(PyObject) : -1;
  Py_XDECREF(size);
  if (PyErr_Occurred()) return NULL;
  Py_ssize_t count = PyList_Size(edges);
  if (count > kMostEdges || bytes < 0) bytes = count = 0;  // larger than any node
  for (Py_ssize_t i = 0; i < count; i++) {
    if (to_u64(PyList_GetItem(edges, i), &numbers[i]) < 0) return NULL;
  }
  return PyBool_FromLong(epprof_engine_check_node((char*)node + sizeof(PyObject), (size_t)bytes, number,
                                              numbers, (size_t)count));
}

static PyObject* engine_is_known(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyBool_FromLong(epprof_engine_is_known());
}

static PyObject* engine_reads_nodes(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyBool_FromLong(epprof_engine_reads_nodes());
}

static PyObject* modules_record(PyObject* Py_UNUSED(m), PyObject* value) {
  int on = PyObject_IsTrue(value);
  if (on < 0) return NULL;
  epprof_modules_record(on);
  Py_RETURN_NONE;
}

static PyObject* modules_begin_thread(PyObject* Py_UNUSED(m), PyObject* value) {
  uint64_t number;
  if (to_u64(value, &number) < 0) return NULL;
  epprof_modules_begin_thread(number);
  Py_RETURN_NONE;
}

static PyObject* modules_on_host(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyBool_FromLong(epprof_modules_on_host());
}

static PyObject* module_add(PyObject* Py_UNUSED(m), PyObject* args) {
  epprof_module module;
  if (!PyArg_ParseTuple(args, "IIIIp", &module.name, &module.forward, &module.recompute,
                        &module.backward, &module.on_host)) {
    return NULL;
  }
  return PyLong_FromUnsignedLong(epprof_module_add(&module));
}

static PyObject* pass_begin(PyObject* Py_UNUSED(m), PyObject* args) {
  unsigned int name, kind;
  int follow;
  if (!PyArg_ParseTuple(args, "IIp", &name, &kind, &follow)) return NULL;
  uint64_t op, pass = epprof_pass_begin(name, kind, follow, &op);
  return Py_BuildValue("(KK)", pass, op);
}

static PyObject* pass_end(PyObject* Py_UNUSED(m), PyObject* args) {
  unsigned long long pass, op;
  uint64_t nodes, unlinked;
  if (!PyArg_ParseTuple(args, "KK", &pass, &op)) return NULL;
  epprof_pass_end(pass, op, &nodes, &unlinked);
  return Py_BuildValue("(KK)", nodes, unlinked);
}

static PyObject* switch_calls(PyObject* Py_UNUSED(m), PyObject* const* args, Py_ssize_t count) {
  uint64_t pass, call;
  if (count != 4 || !PyDict_Check(args[1])) {
    PyErr_SetString(PyExc_TypeError,
                    "switch_calls() takes a number, a dict, a function and a gradient");
    return NULL;
  }
  if (to_u64(args[0], &pass) < 0) return NULL;
  int64_t begin = epprof_cost_begin(EPPROF_COST_BACKWARD);
  PyObject* node = PyObject_CallNoArgs(args[2]);
  if (!node) return NULL;
  PyObject* value = PyDict_GetItemWithError(args[1], node);
  Py_DECREF(node);
  if (value ? to_u64(value, &call) < 0 : PyErr_Occurred() != NULL) return NULL;
  if (value) epprof_switch_calls(pass, call);
  epprof_cost_end(EPPROF_COST_BACKWARD, begin);
  Py_RETURN_NONE;
}

static PyObject* drain_node_stacks(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return columns_to_dict(epprof_drain_node_stacks());
}

PyMethodDef backward_functions[] = {
    {"engine_open", engine_open, METH_O, NULL},
    {"engine_is_known", engine_is_known, METH_NOARGS, NULL},
    {"engine_check_node", engine_check_node, METH_VARARGS, NULL},
    {"engine_reads_nodes", engine_reads_nodes, METH_NOARGS, NULL},
    {"modules_record", modules_record, METH_O, NULL},
    {"modules_begin_thread", modules_begin_thread, METH_O, NULL},
    {"modules_on_host", modules_on_host, METH_NOARGS, NULL},
    {"module_add", module_add, METH_VARARGS, NULL},
    {"drain_node_stacks", drain_node_stacks, METH_NOARGS, NULL},
    {"pass_begin", pass_begin, METH_VARARGS, NULL},
    {"pass_end", pass_end, METH_VARARGS, NULL},
    {"switch_calls", (PyCFunction)(void (*)(void))switch_calls, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
