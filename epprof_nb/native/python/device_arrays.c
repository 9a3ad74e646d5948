#include "python/device_arrays.h"

#include <stdlib.h>
#include <string.h>

// Python functions; see `ep_set_device_functions` in _native.pyi.
static PyObject *view_function, *stream_function, *capture_function, *getter_function;
static PyObject* get_current;  // CuPy's function; null until a stream was made current
static PyObject *shape_name, *enter_name, *exit_name;

static device_state* state_of(python_kernel* kernel) {
  if (!kernel->device) kernel->device = calloc(1, sizeof *kernel->device);
  return kernel->device;
}

static int is_of(const device_array* cached, const ep_tensor* tensor) {
  return cached->data == tensor->data && cached->type == tensor->type &&
         cached->rank == tensor->rank && cached->bytes == tensor->bytes &&
         (!tensor->rank ||  // the dimensions of a scalar may be null
          !memcmp(cached->dims, tensor->dims, tensor->rank * sizeof *tensor->dims));
}

PyObject* device_array_get(python_kernel* kernel, size_t slot, const ep_tensor* tensor,
                           int device) {
  device_state* state = state_of(kernel);
  if (!state) return PyErr_NoMemory();
  if (slot < kCachedArrays) {
    device_array* cached = &state->arrays[slot];
    if (cached->array && is_of(cached, tensor)) {
      PyObject* array = cached->array;
      cached->array = NULL;
      return array;
    }
  }
  PyObject* shape = PyTuple_New((Py_ssize_t)tensor->rank);
  for (size_t i = 0; shape && i < tensor->rank; i++) {
    PyObject* dim = PyLong_FromLongLong(tensor->dims[i]);
    if (!dim || PyTuple_SetItem(shape, (Py_ssize_t)i, dim) < 0) Py_CLEAR(shape);
  }
  if (!shape) return NULL;
  PyObject* array = PyObject_CallFunction(view_function, "iKniO", device,
                                          (unsigned long long)(uintptr_t)tensor->data,
                                          (Py_ssize_t)tensor->bytes, (int)tensor->type, shape);
  Py_DECREF(shape);
  return array;
}

// A kernel may have changed the array's shape in place.
static int has_shape(PyObject* array, const ep_tensor* tensor) {
  PyObject* shape = PyObject_GetAttr(array, shape_name);
  int same = shape && PyTuple_Check(shape) && (size_t)PyTuple_Size(shape) == tensor->rank;
  for (size_t i = 0; same && i < tensor->rank; i++) {
    same = PyLong_AsLongLong(PyTuple_GetItem(shape, (Py_ssize_t)i)) == tensor->dims[i];
  }
  Py_XDECREF(shape);
  PyErr_Clear();
  return same;
}

void device_array_put(python_kernel* kernel, size_t slot, const ep_tensor* tensor,
                      PyObject* array) {
  device_state* state = kernel->device;
  if (!state || slot >= kCachedArrays || tensor->rank > kCachedRank || Py_REFCNT(array) > 1 ||
      !has_shape(array, tensor)) {
    Py_DECREF(array);
    return;
  }
  device_array* cached = &state->arrays[slot];
  PyObject* replaced = cached->array;  // from a concurrent run, or of another tensor
  cached->data = tensor->data;
  cached->type = tensor->type;
  cached->bytes = tensor->bytes;
  cached->rank = tensor->rank;
  if (tensor->rank) memcpy(cached->dims, tensor->dims, tensor->rank * sizeof *tensor->dims);
  cached->array = array;
  Py_XDECREF(replaced);
}

void device_state_free(device_state* state) {
  if (!state) return;
  for (size_t i = 0; i < kCachedArrays; i++) Py_XDECREF(state->arrays[i].array);
  Py_XDECREF(state->guard);
  Py_XDECREF(state->enter);
  Py_XDECREF(state->leave);
  free(state);
}

typedef struct {
  PyObject *guard, *leave;  // null: none
  void* stream;
  int device, calls;  // `calls` when it was made current
} kept_stream;
static _Thread_local kept_stream kept;
static _Thread_local int calls;  // kernels on CUDA devices in progress on this thread

static void replace(PyObject** place, PyObject* value) {
  PyObject* old = *place;
  Py_INCREF(value);
  *place = value;
  Py_XDECREF(old);
}

// Makes CuPy's object of a stream; new references to it and its methods.
static int make_guard(int device, void* stream, int captured, kept_stream* made,
                      PyObject** enter) {
  *made = (kept_stream){NULL, NULL, stream, device, 0};
  made->guard = PyObject_CallFunction(captured ? capture_function : stream_function, "iK", device,
                                      (unsigned long long)(uintptr_t)stream);
  *enter = made->guard ? PyObject_GetAttr(made->guard, enter_name) : NULL;
  made->leave = *enter ? PyObject_GetAttr(made->guard, exit_name) : NULL;
  PyObject* getter = made->leave ? PyObject_CallNoArgs(getter_function) : NULL;
  if (getter) {
    replace(&get_current, getter);
    Py_DECREF(getter);
    return 0;
  }
  Py_CLEAR(made->leave);
  Py_CLEAR(made->guard);
  Py_CLEAR(*enter);
  return -1;
}

static int guard_of(device_state* state, int device, void* stream, kept_stream* made,
                    PyObject** enter) {
  if (!state->guard || state->stream != stream) {
    if (make_guard(device, stream, 0, made, enter) < 0) return -1;
    state->stream = stream;
    replace(&state->guard, made->guard);
    replace(&state->enter, *enter);
    replace(&state->leave, made->leave);
    return 0;
  }
  *made = (kept_stream){state->guard, state->leave, stream, device, 0};
  *enter = state->enter;
  Py_INCREF(made->guard);
  Py_INCREF(made->leave);
  Py_INCREF(*enter);
  return 0;
}

// A kernel may have left another stream current.
static int is_current(int device, void* stream) {
  if (!kept.leave || kept.stream != stream || kept.device != device) return 0;
  PyObject* number = PyLong_FromLong(device);
  PyObject* now = number ? PyObject_CallFunctionObjArgs(get_current, number, NULL) : NULL;
  int same = now == kept.guard;
  Py_XDECREF(number);
  Py_XDECREF(now);
  PyErr_Clear();
  return same;
}

int device_enter(python_kernel* kernel, const ep_call* call, PyObject** left) {
  void* stream;
  int device = ep_call_device(call, &stream), captured = ep_call_is_captured(call);
  device_state* state = state_of(kernel);
  *left = NULL;
  if (!state) {
    PyErr_NoMemory();
    return -1;
  }
  if (!captured && is_current(device, stream)) {
    calls++;
    return 0;
  }
  kept_stream made;
  PyObject* enter;
  if ((captured ? make_guard(device, stream, 1, &made, &enter)
                : guard_of(state, device, stream, &made, &enter)) < 0) {
    return -1;
  }
  PyObject* entered = PyObject_CallNoArgs(enter);
  Py_DECREF(enter);
  if (!entered) {
    Py_DECREF(made.guard);
    Py_DECREF(made.leave);
    return -1;
  }
  Py_DECREF(entered);
  made.calls = ++calls;
  if (!captured && !kept.leave && ep_call_is_on_thread_of_run(call)) {
    kept = made;
    return 0;
  }
  Py_DECREF(made.guard);
  *left = made.leave;
  return 0;
}

// Steals the reference. Returns -1 with an exception; keeps an exception that is set.
static int call_leave(PyObject* leave) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* done = PyObject_CallFunctionObjArgs(leave, Py_None, Py_None, Py_None, NULL);
  Py_XDECREF(done);
  Py_DECREF(leave);
  if (type) {
    if (!done) PyErr_WriteUnraisable(NULL);
    PyErr_Restore(type, value, traceback);
  }
  return done ? 0 : -1;
}

int device_leave(PyObject* left) {
  calls--;
  return left ? call_leave(left) : 0;
}

int device_of_kept_stream(void) { return kept.leave && kept.calls > calls ? kept.device : -1; }

void device_leave_kept_stream(void) {
  if (device_of_kept_stream() < 0) return;
  kept_stream ended = kept;
  kept = (kept_stream){NULL, NULL, NULL, 0, 0};
  if (call_leave(ended.leave) < 0) PyErr_WriteUnraisable(NULL);
  Py_DECREF(ended.guard);
}

static PyObject* set_device_functions(PyObject* Py_UNUSED(m), PyObject* args) {
  PyObject *view, *stream, *capture, *getter;
  if (!PyArg_ParseTuple(args, "OOOO", &view, &stream, &capture, &getter)) return NULL;
  Py_INCREF(view);  // never released: a session may be about to call the previous ones
  Py_INCREF(stream);
  Py_INCREF(capture);
  Py_INCREF(getter);
  shape_name = PyUnicode_InternFromString("shape");
  enter_name = PyUnicode_InternFromString("__enter__");
  exit_name = PyUnicode_InternFromString("__exit__");
  if (!shape_name || !enter_name || !exit_name) return NULL;
  view_function = view;
  stream_function = stream;
  capture_function = capture;
  getter_function = getter;
  Py_RETURN_NONE;
}

static PyObject* leave_stream(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  ep_leave_stream();
  Py_RETURN_NONE;
}

static PyObject* load_driver(PyObject* Py_UNUSED(m), PyObject* args) {
  const char* path;
  int devices = 0;
  if (!PyArg_ParseTuple(args, "s", &path)) return NULL;
  char* failed;
  Py_BEGIN_ALLOW_THREADS  // cuInit can take a second
  failed = ep_load_driver(path, &devices);
  Py_END_ALLOW_THREADS
  if (failed) return raise_message(failed);
  return PyLong_FromLong(devices);
}

static PyObject* leave_streams_to_others(PyObject* Py_UNUSED(m), PyObject* leave) {
  int yes = PyObject_IsTrue(leave);
  if (yes < 0) return NULL;
  ep_leave_streams_to_others(yes);
  Py_RETURN_NONE;
}

static PyObject* device_of(PyObject* Py_UNUSED(m), PyObject* pointer) {
  uint64_t address;
  if (to_u64(pointer, &address) < 0) return NULL;
  int device = ep_device_of((const void*)(uintptr_t)address);
  if (device == -2) Py_RETURN_NONE;
  return PyLong_FromLong(device);
}

static PyObject* cuda_device_at(PyObject* Py_UNUSED(m), PyObject* pointer) {
  uint64_t address;
  if (to_u64(pointer, &address) < 0) return NULL;
  int device = ep_cuda_device_at((const void*)(uintptr_t)address);
  if (device < 0) Py_RETURN_NONE;
  return PyLong_FromLong(device);
}

static PyObject* take_allocation_failure(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  char* message = ep_take_allocation_failure();
  if (!message) Py_RETURN_NONE;
  PyObject* text = PyUnicode_FromString(message);
  free(message);
  return text;
}

static PyObject* device_allocate(PyObject* Py_UNUSED(m), PyObject* args) {
  int device;
  Py_ssize_t bytes;
  if (!PyArg_ParseTuple(args, "in", &device, &bytes)) return NULL;
  char* failed = NULL;
  void* memory;
  Py_BEGIN_ALLOW_THREADS
  memory = ep_device_allocate(device, (size_t)bytes, &failed);
  Py_END_ALLOW_THREADS
  if (memory) return PyLong_FromVoidPtr(memory);
  PyErr_SetString(PyExc_MemoryError, failed);
  free(failed);
  return NULL;
}

static PyObject* device_free(PyObject* Py_UNUSED(m), PyObject* args) {
  int device;
  unsigned long long memory;
  if (!PyArg_ParseTuple(args, "iK", &device, &memory)) return NULL;
  Py_BEGIN_ALLOW_THREADS
  ep_device_free(device, (void*)(uintptr_t)memory);
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

static PyObject* device_configure(PyObject* Py_UNUSED(m), PyObject* args) {
  int device, grow_exactly;
  PyObject* limit;
  if (!PyArg_ParseTuple(args, "iOi", &device, &limit, &grow_exactly)) return NULL;
  size_t bytes = limit == Py_None ? 0 : PyLong_AsSize_t(limit);
  if (PyErr_Occurred()) return NULL;
  ep_device_configure(device, limit == Py_None ? NULL : &bytes, grow_exactly);
  Py_RETURN_NONE;
}

static PyObject* device_statistics(PyObject* Py_UNUSED(m), PyObject* args) {
  int device;
  ep_memory_statistics now;
  if (!PyArg_ParseTuple(args, "i", &device)) return NULL;
  ep_device_statistics(device, &now);
  return Py_BuildValue("{s:n,s:n,s:n,s:K,s:K}", "in_use", (Py_ssize_t)now.in_use, "most_in_use",
                       (Py_ssize_t)now.most_in_use, "reserved", (Py_ssize_t)now.reserved,
                       "allocations", (unsigned long long)now.allocations, "regions",
                       (unsigned long long)now.regions);
}

static PyObject* memory_log_start(PyObject* Py_UNUSED(m), PyObject* most) {
  Py_ssize_t events = PyNumber_AsSsize_t(most, PyExc_OverflowError);
  if (events < 0) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the limit must not be negative");
    return NULL;
  }
  ep_memory_log_start((size_t)events);
  Py_RETURN_NONE;
}

static PyObject* memory_log_stop(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(none)) {
  Py_BEGIN_ALLOW_THREADS
  ep_memory_log_stop();
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

static PyObject* memory_log_read(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(none)) {
  uint64_t dropped;
  epprof_columns* columns;
  Py_BEGIN_ALLOW_THREADS
  columns = ep_memory_log_read(&dropped);
  Py_END_ALLOW_THREADS
  return add_count(columns_to_dict(columns), "dropped", dropped);
}

PyMethodDef device_functions[] = {
    {"ep_set_device_functions", set_device_functions, METH_VARARGS, NULL},
    {"ep_leave_stream", leave_stream, METH_NOARGS, NULL},
    {"ep_load_driver", load_driver, METH_VARARGS, NULL},
    {"ep_leave_streams_to_others", leave_streams_to_others, METH_O, NULL},
    {"ep_device_of", device_of, METH_O, NULL},
    {"ep_cuda_device_at", cuda_device_at, METH_O, NULL},
    {"ep_take_allocation_failure", take_allocation_failure, METH_NOARGS, NULL},
    {"ep_device_statistics", device_statistics, METH_VARARGS, NULL},
    {"ep_memory_log_start", memory_log_start, METH_O, NULL},
    {"ep_memory_log_stop", memory_log_stop, METH_NOARGS, NULL},
    {"ep_memory_log_read", memory_log_read, METH_NOARGS, NULL},
    {"ep_device_allocate", device_allocate, METH_VARARGS, NULL},
    {"ep_device_free", device_free, METH_VARARGS, NULL},
    {"ep_device_configure", device_configure, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
