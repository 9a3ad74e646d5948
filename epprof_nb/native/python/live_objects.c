// Objects of some type among many, without a call of Python for each.
#include "python/convert.h"

static PyObject* instances_of(PyObject* Py_UNUSED(m), PyObject* args) {
  PyObject *objects, *kind;
  if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &objects, &PyType_Type, &kind)) return NULL;
  PyObject* found = PyList_New(0);
  for (Py_ssize_t i = 0; found && i < PyList_Size(objects); i++) {
    PyObject* object = PyList_GetItem(objects, i);
    // Runs no code of proxies or metaclasses.
    int is_one = PyType_IsSubtype(Py_TYPE(object), (PyTypeObject*)kind);
    if (is_one && PyList_Append(found, object) < 0) Py_CLEAR(found);
  }
  return found;
}

PyMethodDef live_object_functions[] = {
    {"instances_of", instances_of, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
