// Launches of CUDA kernels by kernels in Python.
#pragma once

#include "python/convert.h"

#include "ep/api.h"

// Arrays of the inputs or outputs of a call; null where there is none.
typedef struct {
  PyObject* const* arrays;
  const ep_tensor* tensors;
  size_t count;
} launch_arrays;

// An integer among the arguments of a launch that is the address of a tensor's memory.
typedef struct {
  int is_given;
  size_t argument;
  int is_of_output;  // or of an input
  size_t tensor;
} address_argument;
int check_repeated(const address_argument* address);  // -1 with an exception if one is given

// `ctx.launch(kernel, grid, block, args, shared_mem=0)`: None, or null with an exception. `address`
// is set if an integer is one.
PyObject* launch_kernel(ep_call* call, const launch_arrays* inputs, const launch_arrays* outputs,
                        PyObject* const* args, Py_ssize_t count, PyObject* keywords,
                        address_argument* address);
// Python's `ep_launch`: the same in a kernel on a CUDA device, and a call of the kernel elsewhere.
PyObject* launch_in_kernel(PyObject* module, PyObject* const* args, Py_ssize_t count);
// Python's `ep_repeat_nothing`: the kernel on this thread has launched in a way that is not noted.
PyObject* repeat_nothing(PyObject* module, PyObject* none);
// Notes that the kernel of a node on a CUDA device, which runs on this thread, has launched by a
// library on a stream. `launch`: all but the arguments, which are `addresses`, null where it has none.
void note_library_launch(const ep_library_launch* launch, void* const* addresses, size_t count,
                         void* stream);
// The same for a call with these arrays. With the GIL.
void note_library_launch_of(ep_call* call, const launch_arrays* inputs, const launch_arrays* outputs,
                            const ep_library_launch* launch, void* const* addresses, size_t count,
                            int is_on_stream);
int launches_create(void);  // -1 with an exception
