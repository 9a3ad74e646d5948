#include "python/cached_calls.h"

#include "python/numbers_of_modules.h"

static PyObject* on_outermost;  // NULL for none

// 0 if a class without a hash raised the error, which is cleared; -1 for others, such as Ctrl-C.
static int cleared(void) {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
  PyErr_Clear();
  return 0;
}

static Py_ssize_t count_of(const Arguments* given) {
  return given->positional + (given->keywords ? PyTuple_Size(given->keywords) : 0);
}

// function(tuple of positional arguments, dictionary of the others or None), after `first`, which
// may be NULL.
static PyObject* call_with(PyObject* function, PyObject* first, const Arguments* given) {
  PyObject* args = PyTuple_New(given->positional);
  if (!args) return NULL;
  for (Py_ssize_t i = 0; i < given->positional; i++) {
    Py_INCREF(given->values[i]);
    PyTuple_SetItem(args, i, given->values[i]);
  }
  Py_ssize_t count = count_of(given);
  PyObject* kwargs = count > given->positional ? PyDict_New() : Py_NewRef(Py_None);
  int failed = !kwargs;
  for (Py_ssize_t i = given->positional; i < count && !failed; i++) {
    PyObject* name = PyTuple_GetItem(given->keywords, i - given->positional);
    failed = PyDict_SetItem(kwargs, name, given->values[i]) < 0;
  }
  PyObject* result = NULL;
  if (!failed && first) result = PyObject_CallFunctionObjArgs(function, first, args, kwargs, NULL);
  if (!failed && !first) result = PyObject_CallFunctionObjArgs(function, args, kwargs, NULL);
  Py_XDECREF(kwargs);
  Py_DECREF(args);
  return result;
}

// Whether an argument may hold a KV cache; -1 on failure. An unknown class takes one.
static int may_be_model(Recorded* self, const Arguments* given) {
  PyObject* module = given->values[0];
  Called* found = find_called(self, module);
  if (!found || found->takes_cache) {
    PyObject* takes = PyDict_GetItemWithError(self->takes_cache, (PyObject*)Py_TYPE(module));
    if (!takes && PyErr_Occurred()) return cleared();
    if (takes != Py_False) return 1;
    found = find_called(self, module);  // the hash of a class may have called other modules
    if (found) found->takes_cache = 0;
  }
  int is_plain = 1;
  Py_ssize_t count = count_of(given);
  for (Py_ssize_t i = 1; i < count && is_plain == 1; i++) {
    PyTypeObject* type = Py_TYPE(given->values[i]);
    if (type == self->last_plain) continue;
    is_plain = PySet_Contains(self->plain, (PyObject*)type);
    if (is_plain == 1) self->last_plain = type;
  }
  if (is_plain < 0) is_plain = cleared();
  return is_plain < 0 ? -1 : !is_plain;
}

PyObject* begin_model(Recorded* self, const Arguments* given) {
  int may_be = may_be_model(self, given);
  if (may_be < 0) return NULL;
  return may_be ? call_with(self->begin_model, given->values[0], given) : Py_NewRef(Py_None);
}

PyObject* end_model(PyObject* self, PyObject* end, PyObject* result) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* done = PyObject_CallFunctionObjArgs(end, result ? result : Py_None, NULL);
  if (!done && result && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
    Py_DECREF(result);
    return NULL;
  }
  if (!done) PyErr_WriteUnraisable(self);
  Py_XDECREF(done);
  PyErr_Restore(type, value, traceback);
  return result;
}

void tell_outermost(const Arguments* given) {
  PyObject* function = on_outermost;
  if (!function) return;
  Py_INCREF(function);  // it may be replaced during the call
  PyObject* done = call_with(function, NULL, given);
  if (!done) PyErr_WriteUnraisable(function);
  Py_XDECREF(done);
  Py_DECREF(function);
}

PyObject* modules_on_outermost(PyObject* Py_UNUSED(m), PyObject* function) {
  PyObject* old = on_outermost;
  on_outermost = function == Py_None ? NULL : function;
  Py_XINCREF(on_outermost);
  Py_XDECREF(old);
  Py_RETURN_NONE;
}
