// Calls of models with a KV cache, and outermost calls: functions in Python see their arguments.
#pragma once

#include "python/recorded_module.h"

// The arguments of a call, as in the vectorcall protocol: the values of the keywords follow the
// positional ones.
typedef struct {
  PyObject* const* values;
  Py_ssize_t positional;
  PyObject* keywords;  // a tuple of names, or NULL
} Arguments;

// The function to call with the result of a model with a KV cache; None for other modules.
PyObject* begin_model(Recorded* self, const Arguments* given);
// Returns the result, or NULL if the call failed or Ctrl-C arrived.
PyObject* end_model(PyObject* self, PyObject* end, PyObject* result);

void tell_outermost(const Arguments* given);
// Sets the function of args and kwargs of each outermost call; None for none.
PyObject* modules_on_outermost(PyObject* m, PyObject* function);
