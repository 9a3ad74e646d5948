// Calls of kernels in Python, on any thread of ONNX Runtime.
#include "python/kernel_calls.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "python/device_arrays.h"
#include "python/kernel_context.h"
#include "python/numpy_arrays.h"

kernel_functions python_functions;

static char* message_of(PyObject* text) {
  PyObject* utf8 = text && PyUnicode_Check(text) ? to_utf8(text) : NULL;
  char* message = strdup(utf8 ? PyBytes_AsString(utf8) : "the error could not be described");
  PyErr_Clear();
  Py_XDECREF(utf8);
  Py_XDECREF(text);
  return message;
}

char* take_error(PyObject* node) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  PyObject* describe = python_functions.describe_error;
  PyObject* text = describe ? PyObject_CallFunctionObjArgs(describe, node ? node : Py_None, value,
                                                           NULL)
                            : PyObject_Str(value);
  char* message = message_of(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return message;
}

int enter_python(PyGILState_STATE* state) {
  if (!Py_IsInitialized()) return -1;
  *state = PyGILState_Ensure();
  return 0;
}

char* python_has_ended(void) { return strdup("Python has ended, and its kernels with it"); }

// Whether other code refers to our array. Collects cycles before it returns true.
static int is_kept(PyObject* array) {
  if (!array || Py_REFCNT(array) == 1) return 0;
  PyObject *type, *value, *traceback;  // from an earlier array
  PyErr_Fetch(&type, &value, &traceback);
  // PyGC_Collect would do nothing while the user has disabled the collector.
  PyObject* module = PyImport_ImportModule("gc");
  PyObject* collected = module ? PyObject_CallMethod(module, "collect", NULL) : NULL;
  PyErr_Restore(type, value, traceback);
  Py_XDECREF(module);
  Py_XDECREF(collected);
  return Py_REFCNT(array) > 1;
}

// Keeps the memory of arrays that the kernel keeps, because other code may read them. Returns -1
// with an exception if there are any.
static int retain_kept(PyObject* const* inputs, const ep_tensor* tensors, size_t input_count,
                       PyObject* context, size_t output_count) {
  int failed = 0;
  for (size_t i = 0; i < input_count + output_count; i++) {
    int is_input = i < input_count;
    size_t number = is_input ? i : i - input_count;
    if (!is_kept(is_input ? inputs[number] : context_output(context, number))) continue;
    ep_retain(is_input ? tensors[number].data : context_output_data(context, number));
    if (!failed) {
      PyErr_Format(PyExc_RuntimeError,
                   "the kernel keeps %s %zu after it has returned, but its memory belongs to the "
                   "session. Keep a copy: .copy()",
                   is_input ? "input" : "output", number);
    }
    failed = -1;
  }
  return failed;
}

static size_t input_slot(size_t i) { return i < kFirstOutput ? i : kCachedArrays; }

// The arguments of a kernel; `arrays` gets new references to the inputs; null for omitted inputs.
static PyObject* arguments(python_kernel* kernel, int device, PyObject* context, PyObject** arrays,
                           const ep_tensor* inputs, size_t count) {
  PyObject* args = PyTuple_New((Py_ssize_t)count + 1);
  if (!args) return NULL;
  Py_INCREF(context);
  PyTuple_SetItem(args, 0, context);
  for (size_t i = 0; i < count; i++) {
    PyObject* array = Py_None;
    if (inputs[i].present) {
      array = arrays[i] = inputs[i].on_device
                              ? device_array_get(kernel, input_slot(i), &inputs[i], device)
                              : numpy_view(&inputs[i], 0);
      if (!array) {
        Py_DECREF(args);
        return NULL;
      }
    }
    Py_INCREF(array);
    PyTuple_SetItem(args, (Py_ssize_t)i + 1, array);
  }
  return args;
}

static void record(python_kernel* kernel, int64_t start, int64_t end,
                   const ep_replay_record* replay) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* done =
      PyObject_CallFunction(python_functions.record, "OLLN", kernel->node, (long long)start,
                            (long long)end, describe_replay(replay));
  if (!done) PyErr_WriteUnraisable(python_functions.record);
  Py_XDECREF(done);
  PyErr_Restore(type, value, traceback);
}

static int call_function(python_kernel* kernel, PyObject* args, const ep_call* call,
                         PyObject* function, const ep_replay_record* replay) {
  void* stream;
  int device = ep_call_device(call, &stream);
  PyObject* left = NULL;
  if (device >= 0 && device_enter(kernel, call, &left) < 0) return -1;
  int64_t start = device < 0 && epprof_recording_ops() ? epprof_now_ns() : 0;  // CUPTI records CUDA's
  // A kernel may run another session.
  PyObject* outer = context_make_current(PyTuple_GetItem(args, 0));
  PyObject* result = PyObject_Call(function, args, NULL);
  context_make_current(outer);
  if (device >= 0 && device_leave(left) < 0) Py_CLEAR(result);
  if (start) record(kernel, start, epprof_now_ns(), replay);
  if (result && result != Py_None) {
    PyErr_Format(PyExc_TypeError,
                 "the kernel returned %R; it must write its result into ctx.out(shape, dtype) "
                 "and return nothing",
                 (PyObject*)Py_TYPE(result));
    Py_CLEAR(result);
  }
  Py_XDECREF(result);
  return result ? 0 : -1;
}

// Returns null or an error message. `function`: null for the kernel's current function.
static char* call_kernel(python_kernel* kernel, ep_call* call, const ep_tensor* inputs,
                         size_t count, PyObject* function, const ep_replay_record* replay) {
  enum { kFewInputs = 16 };
  PyObject* few[kFewInputs] = {NULL};
  PyObject** arrays = count > kFewInputs ? calloc(count, sizeof *arrays) : few;
  PyObject* context = arrays ? context_new(kernel, call) : NULL;
  if (!function) function = PyList_GetItem(kernel->cell, 0);
  Py_INCREF(function);  // the kernel may be redefined during the call
  void* stream;
  int device = ep_call_device(call, &stream);
  PyObject* args = context ? arguments(kernel, device, context, arrays, inputs, count) : NULL;
  if (args) context_set_inputs(context, arrays, inputs, count);
  int failed = args ? call_function(kernel, args, call, function, replay) : -1;
  Py_XDECREF(args);
  if (!failed) failed = context_check_outputs(context);
  if (failed && !PyErr_Occurred()) PyErr_NoMemory();
  // An exception's traceback refers to the arrays until the error is described.
  char* error = failed ? take_error(kernel->node) : NULL;
  if (context) {
    context_end_call(context);
    if (retain_kept(arrays, inputs, count, context, kernel->output_count) < 0) {
      if (error) {
        PyErr_Clear();
      } else {
        error = take_error(kernel->node);
      }
    }
    if (!error && device >= 0) context_keep_launches(context, call, function);
    context_drop_outputs(context);
    Py_DECREF(context);
  }
  for (size_t i = 0; arrays && i < count; i++) {
    if (arrays[i] && inputs[i].on_device) {
      device_array_put(kernel, input_slot(i), &inputs[i], arrays[i]);
    } else {
      Py_XDECREF(arrays[i]);
    }
  }
  if (arrays != few) free(arrays);
  Py_DECREF(function);
  return error;
}

// Whether this thread runs, or has run, Python code. Threads of ONNX Runtime's pool have a state only
// while a kernel runs.
static int is_of_python(void) {
  static _Thread_local int known = 0;
  if (Py_IsInitialized() && PyGILState_GetThisThreadState() != NULL) known = 1;
  return known;
}

// While Python ends, it unwinds each thread that returns to it from ONNX Runtime, and the frames of
// ONNX Runtime end the process then. The main thread ends Python.
void kernel_end_run(void) {
  if (!is_of_python() || epprof_thread_id() == (uint64_t)getpid()) return;
  while (!Py_IsInitialized()) pause();
}

char* kernel_compute(void* handle, ep_call* call, const ep_tensor* inputs, size_t count,
                     void* function, const ep_replay_record* replay) {
  PyGILState_STATE state;
  int has_state = Py_IsInitialized() && PyGILState_GetThisThreadState() != NULL;
  int returns_to_python = is_of_python();
  if (enter_python(&state) < 0) {
    while (returns_to_python) pause();
    return python_has_ended();
  }
  char* error = call_kernel(handle, call, inputs, count, function, replay);
  if (!has_state) ep_leave_stream();  // CuPy's stack of streams ends with the state
  PyGILState_Release(state);
  return error;
}

// ONNX Runtime's copies run without the GIL. Only recording them takes it.
void kernel_record_copy(int64_t start, int64_t end, size_t bytes, int to_device) {
  PyGILState_STATE state;
  if (enter_python(&state) < 0) return;
  PyObject* done =
      PyObject_CallFunction(python_functions.record_copy, "LLni", (long long)start, (long long)end,
                            (Py_ssize_t)bytes, to_device);
  if (!done) PyErr_WriteUnraisable(python_functions.record_copy);
  Py_XDECREF(done);
  PyGILState_Release(state);
}
