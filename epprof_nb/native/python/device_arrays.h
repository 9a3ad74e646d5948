// CuPy arrays over device memory, and the current stream of a kernel.
#pragma once

#include "python/kernel_context.h"

// An array of an input or output, reused as long as the tensor is the same.
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
  PyObject* guard;  // CuPy's object for the stream ...
  PyObject *enter, *leave;  // ... and its methods that make it current and restore the previous one
} device_state;

// New reference, or null with an exception. `slot`: the number of the input, or kFirstOutput plus
// the number of the output.
PyObject* device_array_get(python_kernel* kernel, size_t slot, const ep_tensor* tensor, int device);
// Takes back an array without other references. Steals the reference.
void device_array_put(python_kernel* kernel, size_t slot, const ep_tensor* tensor,
                      PyObject* array);
void device_state_free(device_state* state);

// Makes the stream of a call current; if it is captured, memory that the kernel allocates belongs
// to the graph. `*left` is for `device_leave`. Returns -1 with an exception.
int device_enter(python_kernel* kernel, const ep_call* call, PyObject** left);
int device_leave(PyObject* left);  // -1 with an exception; keeps an exception that is set

// The stream stays current until its run ends, if the end is reported on this thread. Entering and
// leaving a stream takes longer than the rest of a node.
int device_of_kept_stream(void);      // -1: none, or a kernel in progress uses it
void device_leave_kept_stream(void);  // with the GIL, while its device is current
