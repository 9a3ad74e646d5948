// Python kernels as parts of graphs: their functions, and recorded replays.
#include "python/kernel_calls.h"

#include <stdlib.h>

#include "python/graphs.h"
#include "python/kernel_context.h"

// The properties that all activities of a replay share; None outside of a replay.
PyObject* describe_replay(const ep_replay_record* replay) {
  if (!replay) Py_RETURN_NONE;
  return Py_BuildValue("(KLLL)", (unsigned long long)replay->correlation,
                       (long long)replay->stream, (long long)replay->graph_id,
                       (long long)replay->graph_node_id);
}

void* kernel_hold_function(void* handle) {
  PyGILState_STATE state;
  if (enter_python(&state) < 0) return NULL;
  PyObject* function = PyList_GetItem(((python_kernel*)handle)->cell, 0);
  Py_XINCREF(function);
  PyGILState_Release(state);
  return function;
}

void kernel_drop_function(void* function) { Py_DECREF((PyObject*)function); }

void kernel_hold_object(void* object) { Py_INCREF((PyObject*)object); }

int kernel_has_function(void* handle, void* function) {
  return PyList_GetItem(((python_kernel*)handle)->cell, 0) == function;
}

void kernel_release_graphs(uint32_t session, int gpu_graph_id) {
  PyGILState_STATE state;
  if (enter_python(&state) < 0) return;
  PyObject* done =
      PyObject_CallFunction(python_functions.release_graphs, "Ii", session, gpu_graph_id);
  if (!done) PyErr_WriteUnraisable(python_functions.release_graphs);
  Py_XDECREF(done);
  PyGILState_Release(state);
}

void* kernel_enter_replay(void) {
  PyGILState_STATE* state = malloc(sizeof *state);
  if (state && enter_python(state) == 0) return state;
  free(state);
  return NULL;
}

void kernel_leave_replay(void* entered) {
  PyGILState_Release(*(PyGILState_STATE*)entered);
  free(entered);
}

int64_t kernel_begin_replay(const ep_graph* graph) {
  PyGILState_STATE state;
  if (enter_python(&state) < 0) return -1;
  PyObject* described = describe_graph(graph);
  PyObject* begin = python_functions.begin_replay;
  PyObject* stream = described ? PyObject_CallFunctionObjArgs(begin, described, NULL) : NULL;
  int64_t number = stream ? PyLong_AsLongLong(stream) : -1;
  if (PyErr_Occurred()) PyErr_WriteUnraisable(begin);
  Py_XDECREF(described);
  Py_XDECREF(stream);
  PyGILState_Release(state);
  return number;
}

void kernel_end_replay(const ep_replay_record* replay, int64_t start, int64_t end) {
  PyObject* done = PyObject_CallFunction(python_functions.end_replay, "NLL",
                                         describe_replay(replay), (long long)start, (long long)end);
  if (!done) PyErr_WriteUnraisable(python_functions.end_replay);
  Py_XDECREF(done);
}
