// The function of _native that compares a model of PyTorch with what it was at an earlier profile.
// It is in C because each profile begins with it, and a model has hundreds of modules.
#include "python/convert.h"

enum { kDeepest = 200 };

static PyObject *modules_name, *parameters_name, *is_cuda_name;  // kept, because the lookup hashes them

static int matches(PyObject* module, PyObject* entries, Py_ssize_t* at, int depth);

// The dictionary of a module, owned; NULL with an error, or without one if it is not a dict.
static PyObject* dict_of(PyObject* module, PyObject* name) {
  PyObject* found = PyObject_GetAttr(module, name);
  if (found && PyDict_CheckExact(found)) return found;
  Py_XDECREF(found);
  return NULL;
}

// 1 if a parameter of the module itself is not on a CUDA GPU, else 0; -1 if that is unknown.
static int is_on_host(PyObject* module) {
  PyObject *parameters = dict_of(module, parameters_name), *parameter;
  if (!parameters) return -1;
  Py_ssize_t position = 0;
  int found = 0;
  while (!found && PyDict_Next(parameters, &position, NULL, &parameter)) {
    if (parameter == Py_None) continue;
    Py_INCREF(parameter);
    PyObject* is_cuda = PyObject_GetAttr(parameter, is_cuda_name);
    Py_DECREF(parameter);
    found = is_cuda == Py_True ? 0 : is_cuda == Py_False ? 1 : -1;
    Py_XDECREF(is_cuda);
  }
  Py_DECREF(parameters);
  return found;
}

// Whether a child has the name and the id of an edge, and matches its own entry at its first edge.
static int child_matches(PyObject* name, PyObject* child, PyObject* edge, PyObject* entries,
                         Py_ssize_t* at, int depth) {
  uint64_t id;
  if (!PyTuple_Check(edge) || PyTuple_Size(edge) != 3) return 0;
  if (to_u64(PyTuple_GetItem(edge, 1), &id) < 0 || id != (uintptr_t)child) return 0;
  if (PyObject_RichCompareBool(name, PyTuple_GetItem(edge, 0), Py_EQ) != 1) return 0;
  return PyTuple_GetItem(edge, 2) != Py_True || matches(child, entries, at, depth + 1);
}

static int children_match(PyObject* module, PyObject* edges, PyObject* entries, Py_ssize_t* at,
                          int depth) {
  PyObject *children = dict_of(module, modules_name), *name, *child;
  if (!children) return 0;
  Py_ssize_t position = 0, count = PyTuple_Size(edges), edge = 0;
  int is_same = 1;
  while (is_same && PyDict_Next(children, &position, &name, &child)) {
    if (child == Py_None) continue;
    if (edge == count) {
      is_same = 0;
      break;
    }
    Py_INCREF(name);  // code of the program may change the dictionary
    Py_INCREF(child);
    is_same = child_matches(name, child, PyTuple_GetItem(edges, edge++), entries, at, depth);
    Py_DECREF(name);
    Py_DECREF(child);
  }
  Py_DECREF(children);
  return is_same && edge == count;
}

static int matches(PyObject* module, PyObject* entries, Py_ssize_t* at, int depth) {
  if (depth > kDeepest || *at >= PyTuple_Size(entries)) return 0;
  PyObject* entry = PyTuple_GetItem(entries, (*at)++);
  uint64_t id, type;
  if (!PyTuple_Check(entry) || PyTuple_Size(entry) != 4) return 0;
  if (to_u64(PyTuple_GetItem(entry, 0), &id) < 0 || id != (uintptr_t)module) return 0;
  if (to_u64(PyTuple_GetItem(entry, 1), &type) < 0 || type != (uintptr_t)Py_TYPE(module)) return 0;
  if (is_on_host(module) != (PyTuple_GetItem(entry, 2) == Py_True)) return 0;
  PyObject* edges = PyTuple_GetItem(entry, 3);
  return PyTuple_Check(edges) && children_match(module, edges, entries, at, depth);
}

static PyObject* model_matches(PyObject* Py_UNUSED(m), PyObject* args) {
  PyObject *module, *entries;
  if (!PyArg_ParseTuple(args, "OO!", &module, &PyTuple_Type, &entries)) return NULL;
  if (!modules_name) modules_name = PyUnicode_InternFromString("_modules");
  if (!parameters_name) parameters_name = PyUnicode_InternFromString("_parameters");
  if (!is_cuda_name) is_cuda_name = PyUnicode_InternFromString("is_cuda");
  if (!modules_name || !parameters_name || !is_cuda_name) return NULL;
  Py_ssize_t at = 0;
  int is_same = matches(module, entries, &at, 0) && at == PyTuple_Size(entries);
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
  PyErr_Clear();  // of the program's classes, whose modules then have to be found again
  return PyBool_FromLong(is_same);
}

PyMethodDef model_functions[] = {
    {"model_matches", model_matches, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
