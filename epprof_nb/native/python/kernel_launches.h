// Launches of CUDA kernels by kernels in Python.
#pragma once

#include "python/convert.h"

#include "ep/api.h"

// Arrays of the inputs or outputs of a call; null if missing.
typedef struct {
  PyObject* const* arrays;
  const ep_tensor* tensors;
  size_t count;
} launch_arrays;

// An integer argument of a launch that is the address of a tensor's memory.
typedef struct {
  int is_given;
  size_t argument;
  int is_of_output;  // or of an input
  size_t tensor;
} address_argument;
int check_repeated(const address_argument* address);  // -1 with an exception if an address is given

// `ctx.launch(kernel, grid, block, args, shared_mem=0)`: None, or null with an exception. `address`
// is set if an integer is an address.
PyObject* launch_kernel(ep_call* call, const launch_arrays* inputs, const launch_arrays* outputs,
                        PyObject* const* args, Py_ssize_t count, PyObject* keywords,
                        address_argument* address);
// Python's `ep_launch`: does the same in a kernel on a CUDA device, and calls the kernel elsewhere.
PyObject* launch_in_kernel(PyObject* module, PyObject* const* args, Py_ssize_t count);
// Python's `ep_repeat_nothing`: the kernel on this thread has made launches that cannot be
// repeated.
PyObject* repeat_nothing(PyObject* module, PyObject* none);
// Python's `ep_note_scratch`.
PyObject* note_scratch(PyObject* module, PyObject* args);
// Notes a launch that a library made on a stream for the kernel on this thread, of a node on a CUDA
// device. `launch`: everything but the arguments, which are `addresses`; null for missing ones.
void note_library_launch(const ep_library_launch* launch, void* const* addresses, size_t count,
                         void* stream);
// The same for a call with these arrays. With the GIL.
void note_library_launch_of(ep_call* call, const launch_arrays* inputs, const launch_arrays* outputs,
                            const ep_library_launch* launch, void* const* addresses, size_t count,
                            int is_on_stream);
int launches_create(void);  // -1 with an exception
