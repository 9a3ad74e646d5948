// The functions of _native that time what recording takes.
#include "python/convert.h"

// The number of a kind; -1 on failure.
static int to_kind(PyObject* value) {
  long long kind = PyLong_AsLongLong(value);
  if (PyErr_Occurred()) return -1;
  if (kind >= 0 && kind < EPPROF_COST_KINDS) return (int)kind;
  PyErr_SetString(PyExc_ValueError, "core/recording_costs.py has no such kind");
  return -1;
}

static PyObject* cost_begin(PyObject* Py_UNUSED(m), PyObject* value) {
  int kind = to_kind(value);
  return kind < 0 ? NULL : PyLong_FromLongLong(epprof_cost_begin(kind));
}

static PyObject* add_cost(PyObject* const* args, Py_ssize_t count, void (*add)(int, int64_t)) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "a cost has a kind and a begin");
    return NULL;
  }
  int kind = to_kind(args[0]);
  int64_t begin = kind < 0 ? 0 : PyLong_AsLongLong(args[1]);
  if (PyErr_Occurred()) return NULL;
  add(kind, begin);
  Py_RETURN_NONE;
}

static PyObject* cost_end(PyObject* Py_UNUSED(m), PyObject* const* args, Py_ssize_t count) {
  return add_cost(args, count, epprof_cost_end);
}

static PyObject* cost_add(PyObject* Py_UNUSED(m), PyObject* const* args, Py_ssize_t count) {
  return add_cost(args, count, epprof_cost_add);
}

static PyObject* cost_resume(PyObject* Py_UNUSED(m), PyObject* begin) {
  int64_t ns = PyLong_AsLongLong(begin);
  return PyErr_Occurred() ? NULL : PyLong_FromLongLong(epprof_cost_resume(ns));
}

static PyObject* take_costs(PyObject* Py_UNUSED(m), PyObject* begins) {
  int64_t ns[EPPROF_COST_KINDS], counts[EPPROF_COST_KINDS];
  epprof_take_costs(ns, counts, PyObject_IsTrue(begins));
  PyObject* list = PyList_New(0);
  for (int i = 0; list && i < EPPROF_COST_KINDS; i++) {
    PyObject* value = Py_BuildValue("LL", (long long)ns[i], (long long)counts[i]);
    if (!value || PyList_Append(list, value) < 0) Py_CLEAR(list);
    Py_XDECREF(value);
  }
  return list;
}

static PyObject* take_op_costs(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  PyObject* list = PyList_New(0);
  epprof_op_cost cost;
  while (list && epprof_take_op_cost(&cost)) {
    PyObject* value = Py_BuildValue("KiLL", (unsigned long long)cost.op_id, (int)cost.kind,
                                    (long long)cost.ns, (long long)cost.events);
    if (!value || PyList_Append(list, value) < 0) Py_CLEAR(list);
    Py_XDECREF(value);
  }
  return list;
}

PyMethodDef cost_functions[] = {
    {"cost_begin", cost_begin, METH_O, NULL},
    {"cost_end", (PyCFunction)(void (*)(void))cost_end, METH_FASTCALL, NULL},
    {"cost_add", (PyCFunction)(void (*)(void))cost_add, METH_FASTCALL, NULL},
    {"cost_resume", cost_resume, METH_O, NULL},
    {"take_costs", take_costs, METH_O, NULL},
    {"take_op_costs", take_op_costs, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
