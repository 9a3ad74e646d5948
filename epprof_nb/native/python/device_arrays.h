// Arrays over device memory, which Python makes (CuPy's), and the stream that is current in a kernel.
#pragma once

#include "python/kernel_context.h"

// An array of an input or output, which is used again as long as the tensor is the same.
enum { kCachedArrays = 16, kFirstOutput = 8, kCachedRank = 8 };
typedef struct {
  void* data;
  int32_t type;
  size_t bytes, rank;
  int64_t dims[kCachedRank];
  PyObject* array;  // null while a kernel has it
} device_array;

typedef struct device_state {
  device_array arrays[kCachedArrays];  // inputs, then outputs
  void* stream;
  PyObject* guard;  // makes `stream` current
} device_state;

// New reference, or null with an exception. `slot`: the number of the input, or kFirstOutput and
// that of the output.
PyObject* device_array_get(python_kernel* kernel, size_t slot, const ep_tensor* tensor, int device);
// Takes back an array that nobody else refers to. Steals the reference.
void device_array_put(python_kernel* kernel, size_t slot, const ep_tensor* tensor,
                      PyObject* array);
void device_state_free(device_state* state);

// Makes the stream current. New reference to what `device_leave` releases, or null. `captured`:
// into a graph, to which what the kernel allocates then belongs.
PyObject* device_enter(python_kernel* kernel, int device, void* stream, int captured);
int device_leave(PyObject* guard);  // -1 with an exception; keeps the one that is set
