// The `ctx` of a kernel in Python.
#pragma once

#include "python/convert.h"

#include "ep/api.h"

// The model's information about an output of a node.
typedef struct {
  int present, has_shape;
  int32_t type;
  size_t rank;
  int64_t* dims;
  char* name;
} expected_output;

typedef struct {
  PyObject* cell;  // a list with the function, which is replaced when the kernel is redefined
  PyObject* node;
  expected_output* outputs;
  size_t output_count;
  struct device_state* device;  // null until a tensor lies in device memory
} python_kernel;

int context_type_create(PyObject* module);
PyObject* context_new(python_kernel* kernel, ep_call* call);
int context_check_outputs(PyObject* context);  // -1 with an exception if one is missing
PyObject* context_output(PyObject* context, size_t index);  // borrowed; null: not made
const void* context_output_data(PyObject* context, size_t index);
void context_set_inputs(PyObject* context, PyObject* const* arrays, const ep_tensor* inputs,
                        size_t count);
// To call when a kernel has returned. Lets its node repeat the launches, if the kernel allows it.
void context_keep_launches(PyObject* context, ep_call* call, PyObject* function);
// Sets the context of the kernel that runs on this thread; borrowed, null: none. Returns the
// previous one.
PyObject* context_make_current(PyObject* context);
// Python's `ep_current_node`.
PyObject* current_node(PyObject* module, PyObject* none);
void context_end_call(PyObject* context);      // no more outputs can be made
void context_drop_outputs(PyObject* context);  // and drops references to those made
