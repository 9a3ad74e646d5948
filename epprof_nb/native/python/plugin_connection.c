// Connection of the library to Python when ONNX Runtime loads it without our Python modules.
#include "python/kernel_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The first object of CPython that a process lacks if it is not Python. The core's references to
// CPython are weak, so that ONNX Runtime can load the library in any process.
static int is_python(void) { return Py_IsInitialized && Py_IsInitialized(); }

static char* not_python(void) {
  return strdup(
      "the kernels of EpprofExecutionProvider are Python functions, and this process has no Python "
      "interpreter. Use the provider in a Python process, with the epprof_nb package installed, or "
      "initialize Python in this process before ONNX Runtime loads the library with the symbols "
      "of libpython (RTLD_GLOBAL)");
}

// Imports the module that calls `ep_set_functions`, with the GIL.
static char* import_provider(void) {
  PyObject* module = PyImport_ImportModule("epprof_nb.ep.provider");
  PyObject* done = module ? PyObject_CallMethod(module, "connect", NULL) : NULL;
  Py_XDECREF(module);
  Py_XDECREF(done);
  if (done) return NULL;
  char text[2000], *error = take_error(NULL);
  snprintf(text, sizeof text,
           "EpprofExecutionProvider needs the Python package epprof_nb, which cannot be used: %s",
           error);
  free(error);
  return strdup(text);
}

char* ep_connect_python(void) {
  if (!is_python()) return not_python();
  PyGILState_STATE state = PyGILState_Ensure();
  char* error = import_provider();
  PyGILState_Release(state);
  return error;
}

static int connect_soon(void* Py_UNUSED(data)) {
  // A session, if one is created, reports the error.
  free(import_provider());
  return 0;
}

char* ep_connect_python_soon(void) {
  if (!is_python()) return not_python();
  // Python imports nothing while ONNX Runtime loads a library: the import may release the GIL, and
  // another thread may then wait for ONNX Runtime's lock with the GIL.
  Py_AddPendingCall(connect_soon, NULL);
  return NULL;
}
