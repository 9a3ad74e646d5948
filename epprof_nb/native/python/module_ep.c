// The functions of _native over ep/api.h, and the calls from ONNX Runtime into Python kernels.
#include "python/convert.h"

#include <stdlib.h>
#include <string.h>

#include "ep/api.h"
#include "python/device_arrays.h"
#include "python/graphs.h"
#include "python/kernel_context.h"
#include "python/numpy_arrays.h"

// Python functions; see `ep_set_functions` in _native.pyi.
static PyObject *open_function, *limit_function, *node_function, *error_function, *record_function, *copy_function,
    *replay_function, *end_replay_function, *release_function;

static char* message_of(PyObject* text) {
  const char* utf8 = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  char* message = strdup(utf8 ? utf8 : "the error could not be described");
  PyErr_Clear();
  Py_XDECREF(text);
  return message;
}

// The message for the exception that is set. `node`: borrowed, or null.
static char* take_error(PyObject* node) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  PyObject* text = error_function ? PyObject_CallFunctionObjArgs(
                                        error_function, node ? node : Py_None, value, NULL)
                                  : PyObject_Str(value);
  char* message = message_of(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return message;
}

static int enter(PyGILState_STATE* state) {
  if (!Py_IsInitialized()) return -1;
  *state = PyGILState_Ensure();
  return 0;
}

static char* not_running(void) { return strdup("Python has ended, and its kernels with it"); }

// -- sessions -------------------------------------------------------------------------------

enum { kMaxNumbers = 64 };

static int numbers_of(PyObject* tuple, size_t* numbers, size_t* count) {
  Py_ssize_t length = PySequence_Size(tuple);
  if (length < 0 || length > kMaxNumbers) return -1;
  for (Py_ssize_t i = 0; i < length; i++) {
    PyObject* item = PySequence_GetItem(tuple, i);
    numbers[i] = item ? PyLong_AsSize_t(item) : 0;
    Py_XDECREF(item);
    if (PyErr_Occurred()) return -1;
  }
  *count = (size_t)length;
  return 0;
}

static int add_kernel(ep_kernels* kernels, PyObject* spec) {
  ep_definition definition = {0};
  size_t host_inputs[kMaxNumbers], host_outputs[kMaxNumbers];
  PyObject *types, *inputs, *outputs, *handle;
  if (!PyArg_ParseTuple(spec, "ssiiO!OOppO", &definition.op_type, &definition.domain,
                        &definition.first_version, &definition.last_version, &PyDict_Type, &types,
                        &inputs, &outputs, &definition.has_limits, &definition.is_view,
                        &handle) ||
      numbers_of(inputs, host_inputs, &definition.host_input_count) < 0 ||
      numbers_of(outputs, host_outputs, &definition.host_output_count) < 0) {
    return -1;
  }
  definition.host_inputs = host_inputs;
  definition.host_outputs = host_outputs;
  Py_INCREF(handle);
  ep_kernels_add(kernels, &definition, handle);
  PyObject *constraint, *allowed;
  Py_ssize_t position = 0;
  while (PyDict_Next(types, &position, &constraint, &allowed)) {
    size_t numbers[kMaxNumbers], count;
    int32_t element_types[kMaxNumbers];
    const char* name = PyUnicode_AsUTF8AndSize(constraint, NULL);
    if (!name || numbers_of(allowed, numbers, &count) < 0) return -1;
    for (size_t i = 0; i < count; i++) element_types[i] = (int32_t)numbers[i];
    ep_kernels_add_types(kernels, name, element_types, count);
  }
  return 0;
}

static void release_definition(void* handle) {
  PyGILState_STATE state;
  if (enter(&state) < 0) return;
  Py_DECREF((PyObject*)handle);
  PyGILState_Release(state);
}

static const char kKernelsCapsule[] = "epprof_nb.ep_kernels";

static void release_kernels(PyObject* capsule) {
  ep_kernels_release(PyCapsule_GetPointer(capsule, kKernelsCapsule));
}

static PyObject* make_kernels(PyObject* Py_UNUSED(m), PyObject* args) {
  int device;
  PyObject* specs;
  if (!PyArg_ParseTuple(args, "iO!", &device, &PyTuple_Type, &specs)) return NULL;
  ep_kernels* kernels = ep_kernels_new(device);
  PyObject* capsule = PyCapsule_New(kernels, kKernelsCapsule, release_kernels);
  for (Py_ssize_t i = 0; capsule && i < PyTuple_Size(specs); i++) {
    if (add_kernel(kernels, PyTuple_GetItem(specs, i)) < 0) Py_CLEAR(capsule);
  }
  char* failed = capsule ? ep_kernels_register(kernels) : NULL;
  if (!failed) return capsule;
  Py_DECREF(capsule);
  return raise_message(failed);
}

static int select_names(ep_plan* plan, PyObject* names, void (*select)(ep_plan*, const char*)) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(names); i++) {
    const char* name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, i), NULL);
    if (!name) return -1;
    select(plan, name);
  }
  return 0;
}

static int build_plan(const char* const* keys, const char* const* values, size_t count,
                      ep_plan* plan) {
  PyObject* options = PyDict_New();
  for (size_t i = 0; options && i < count; i++) {
    PyObject* value = PyUnicode_FromString(values[i]);
    if (!value || PyDict_SetItemString(options, keys[i], value) < 0) Py_CLEAR(options);
    Py_XDECREF(value);
  }
  PyObject* result =
      options ? PyObject_CallFunctionObjArgs(open_function, options, NULL) : NULL;
  Py_XDECREF(options);
  if (!result) return -1;
  unsigned int session;
  int graphs;
  PyObject *types, *nodes, *capsule;
  int failed = !PyArg_ParseTuple(result, "IpO!O!O", &session, &graphs, &PyTuple_Type, &types,
                                 &PyTuple_Type, &nodes, &capsule);
  ep_kernels* kernels = failed ? NULL : PyCapsule_GetPointer(capsule, kKernelsCapsule);
  failed = !kernels;
  if (!failed) {
    ep_plan_use_kernels(plan, kernels);
    ep_plan_set_session(plan, session);
    if (graphs) ep_plan_capture_graphs(plan);
    failed = select_names(plan, types, ep_plan_select_type) < 0 ||
             select_names(plan, nodes, ep_plan_select_node) < 0;
  }
  Py_DECREF(result);
  return failed ? -1 : 0;
}

static char* open_session(const char* const* keys, const char* const* values, size_t count,
                          ep_plan* plan) {
  PyGILState_STATE state;
  if (enter(&state) < 0) return not_running();
  char* error = build_plan(keys, values, count, plan) < 0 ? take_error(NULL) : NULL;
  PyGILState_Release(state);
  return error;
}

// -- nodes ----------------------------------------------------------------------------------

static PyObject* list_of(const ep_attribute* attribute) {
  PyObject* tuple = PyTuple_New((Py_ssize_t)attribute->count);
  for (size_t i = 0; tuple && i < attribute->count; i++) {
    PyObject* item;
    if (attribute->ints) {
      item = PyLong_FromLongLong(attribute->ints[i]);
    } else if (attribute->floats) {
      item = PyFloat_FromDouble(attribute->floats[i]);
    } else {
      item = PyUnicode_DecodeUTF8(attribute->strings[i],
                                  (Py_ssize_t)strlen(attribute->strings[i]), "backslashreplace");
    }
    if (!item || PyTuple_SetItem(tuple, (Py_ssize_t)i, item) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

static PyObject* attribute_value(const ep_attribute* attribute) {
  if (attribute->type == EP_TENSOR) return numpy_copy(&attribute->tensor);
  PyObject* list = list_of(attribute);
  if (!list || attribute->type == EP_INTS || attribute->type == EP_FLOATS ||
      attribute->type == EP_STRINGS) {
    return list;
  }
  PyObject* only = PyTuple_GetItem(list, 0);
  Py_INCREF(only);
  Py_DECREF(list);
  return only;
}

static void free_kernel(python_kernel* kernel) {
  for (size_t i = 0; i < kernel->output_count; i++) {
    free(kernel->outputs[i].name);
    free(kernel->outputs[i].dims);
  }
  free(kernel->outputs);
  device_state_free(kernel->device);
  Py_XDECREF(kernel->cell);
  Py_XDECREF(kernel->node);
  free(kernel);
}

static python_kernel* describe_outputs(const ep_node* node) {
  python_kernel* kernel = calloc(1, sizeof *kernel);
  kernel->output_count = node->output_count;
  kernel->outputs = calloc(node->output_count + 1, sizeof *kernel->outputs);
  for (size_t i = 0; i < node->output_count; i++) {
    const ep_output* from = &node->outputs[i];
    expected_output* to = &kernel->outputs[i];
    to->present = from->present;
    to->has_shape = from->has_shape;
    to->type = from->type;
    to->rank = from->rank;
    to->name = strdup(from->name);
    to->dims = calloc(from->rank + 1, sizeof *to->dims);
    if (from->rank) memcpy(to->dims, from->dims, from->rank * sizeof *to->dims);
  }
  return kernel;
}

static PyObject* attributes_of(const ep_node* node) {
  PyObject* attributes = PyDict_New();
  for (size_t i = 0; attributes && i < node->attribute_count; i++) {
    PyObject* value = attribute_value(&node->attributes[i]);
    if (!value || PyDict_SetItemString(attributes, node->attributes[i].name, value) < 0) {
      Py_CLEAR(attributes);
    }
    Py_XDECREF(value);
  }
  return attributes;
}

static PyObject* inputs_of(const ep_node* node) {
  PyObject* inputs = PyTuple_New((Py_ssize_t)node->input_count);
  for (size_t i = 0; inputs && i < node->input_count; i++) {
    PyTuple_SetItem(inputs, (Py_ssize_t)i, PyBool_FromLong(node->has_input[i]));
  }
  return inputs;
}

// `*reason`: null: the kernel takes the node. Returns -1 with an exception.
static int find_limit(PyObject* definition, const ep_node* node, char** reason) {
  PyObject* attributes = attributes_of(node);
  PyObject* inputs = attributes ? inputs_of(node) : NULL;
  PyObject* found =
      inputs ? PyObject_CallFunctionObjArgs(limit_function, definition, attributes, inputs, NULL)
             : NULL;
  const char* text = found && found != Py_None ? PyUnicode_AsUTF8AndSize(found, NULL) : NULL;
  if (text) *reason = strdup(text);
  Py_XDECREF(attributes);
  Py_XDECREF(inputs);
  Py_XDECREF(found);
  return PyErr_Occurred() ? -1 : 0;
}

static char* limit_of(void* definition, const ep_node* node, char** reason) {
  PyGILState_STATE state;
  if (enter(&state) < 0) return not_running();
  char* error = find_limit(definition, node, reason) < 0 ? take_error(NULL) : NULL;
  PyGILState_Release(state);
  return error;
}

static python_kernel* make_kernel(PyObject* definition, const ep_node* node) {
  PyObject* attributes = attributes_of(node);
  PyObject* name = attributes ? PyUnicode_DecodeUTF8(node->name, (Py_ssize_t)strlen(node->name),
                                                     "backslashreplace")
                              : NULL;
  PyObject* made = name ? PyObject_CallFunction(node_function, "OOOn", definition, name, attributes,
                                                (Py_ssize_t)node->output_count)
                        : NULL;
  Py_XDECREF(attributes);
  Py_XDECREF(name);
  PyObject *cell, *described;
  if (!made || !PyArg_ParseTuple(made, "O!O", &PyList_Type, &cell, &described)) {
    Py_XDECREF(made);
    return NULL;
  }
  python_kernel* kernel = describe_outputs(node);
  Py_INCREF(cell);
  Py_INCREF(described);
  kernel->cell = cell;
  kernel->node = described;
  Py_DECREF(made);
  return kernel;
}

static char* create_kernel(void* definition, const ep_node* node, void** kernel) {
  PyGILState_STATE state;
  if (enter(&state) < 0) return not_running();
  *kernel = make_kernel(definition, node);
  char* error = *kernel ? NULL : take_error(NULL);
  PyGILState_Release(state);
  return error;
}

static void release_kernel(void* kernel) {
  PyGILState_STATE state;
  if (enter(&state) < 0) return;
  free_kernel(kernel);
  PyGILState_Release(state);
}

// -- compute --------------------------------------------------------------------------------

// Whether somebody refers to an array that is ours alone. Cycles are collected before we say so.
static int is_kept(PyObject* array) {
  if (!array || Py_REFCNT(array) == 1) return 0;
  // Not PyGC_Collect, which does nothing while the user has disabled the collector.
  PyObject* module = PyImport_ImportModule("gc");
  PyObject* collected = module ? PyObject_CallMethod(module, "collect", NULL) : NULL;
  PyErr_Clear();
  Py_XDECREF(module);
  Py_XDECREF(collected);
  return Py_REFCNT(array) > 1;
}

static int check_inputs_kept(PyObject* const* arrays, const ep_tensor* inputs, size_t count) {
  int failed = 0;
  for (size_t i = 0; i < count; i++) {
    if (!is_kept(arrays[i])) continue;
    ep_retain(inputs[i].data);
    if (!failed) {
      PyErr_Format(PyExc_RuntimeError,
                   "the kernel keeps input %zu after it has returned, but its memory belongs to "
                   "the session. Keep a copy: .copy()",
                   i);
    }
    failed = -1;
  }
  return failed;
}

static int check_outputs_kept(PyObject* context, size_t count) {
  int failed = 0;
  for (size_t i = 0; i < count; i++) {
    PyObject* array = context_output(context, i);
    if (!is_kept(array)) continue;
    ep_retain(context_output_data(context, i));
    if (!failed) {
      PyErr_Format(PyExc_RuntimeError,
                   "the kernel keeps output %zu after it has returned, but its memory belongs to "
                   "the session. Keep a copy: .copy()",
                   i);
    }
    failed = -1;
  }
  return failed;
}

static size_t input_slot(size_t i) { return i < kFirstOutput ? i : kCachedArrays; }

// The arguments of a kernel; `arrays` gets new references to the inputs, null where the node leaves
// one out.
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

// What an activity of a replay has in common with the others; None outside of a replay.
static PyObject* describe_replay(const ep_replay_record* replay) {
  if (!replay) Py_RETURN_NONE;
  return Py_BuildValue("(KLLL)", (unsigned long long)replay->correlation,
                       (long long)replay->stream, (long long)replay->graph_id,
                       (long long)replay->graph_node_id);
}

static void record(python_kernel* kernel, int64_t start, int64_t end,
                   const ep_replay_record* replay) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* done = PyObject_CallFunction(record_function, "OLLN", kernel->node, (long long)start,
                                         (long long)end, describe_replay(replay));
  if (!done) PyErr_WriteUnraisable(record_function);
  Py_XDECREF(done);
  PyErr_Restore(type, value, traceback);
}

// `function`: null: the kernel's current one.
static int call_function(python_kernel* kernel, PyObject* args, const ep_call* call,
                         PyObject* function, const ep_replay_record* replay) {
  void* stream;
  int device = ep_call_device(call, &stream);
  PyObject* left = NULL;
  if (!function) function = PyList_GetItem(kernel->cell, 0);
  if (!function) return -1;
  Py_INCREF(function);  // the kernel may be redefined during the call
  if (device >= 0 && device_enter(kernel, call, &left) < 0) {
    Py_DECREF(function);
    return -1;
  }
  int64_t start = device < 0 && ep_recording_ops() ? ep_now_ns() : 0;  // CUPTI records CUDA's
  PyObject* result = PyObject_Call(function, args, NULL);
  if (device >= 0 && device_leave(left) < 0) Py_CLEAR(result);
  if (start) record(kernel, start, ep_now_ns(), replay);
  Py_DECREF(function);
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

static int call_kernel(python_kernel* kernel, ep_call* call, const ep_tensor* inputs,
                       size_t count, PyObject* function, const ep_replay_record* replay) {
  enum { kFewInputs = 16 };
  PyObject* few[kFewInputs] = {NULL};
  PyObject** arrays = count > kFewInputs ? calloc(count, sizeof *arrays) : few;
  PyObject* context = arrays ? context_new(kernel, call) : NULL;
  void* stream;
  int device = ep_call_device(call, &stream);
  PyObject* args = context ? arguments(kernel, device, context, arrays, inputs, count) : NULL;
  int failed = args ? call_function(kernel, args, call, function, replay) : -1;
  Py_XDECREF(args);
  if (context) {
    if (!failed) failed = context_check_outputs(context);
    context_end_call(context);
    if (!failed) failed = check_inputs_kept(arrays, inputs, count);
    if (!failed) failed = check_outputs_kept(context, kernel->output_count);
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
  if (failed && !PyErr_Occurred()) PyErr_NoMemory();
  return failed;
}

static char* compute(void* handle, ep_call* call, const ep_tensor* inputs, size_t count,
                     void* function, const ep_replay_record* replay) {
  PyGILState_STATE state;
  // The threads of ONNX Runtime's pool have one only as long as a kernel runs.
  int has_state = Py_IsInitialized() && PyGILState_GetThisThreadState() != NULL;
  if (enter(&state) < 0) return not_running();
  python_kernel* kernel = handle;
  int failed = call_kernel(kernel, call, inputs, count, function, replay) < 0;
  char* error = failed ? take_error(kernel->node) : NULL;
  if (!has_state) ep_leave_stream();  // CuPy's stack of streams ends with the state
  PyGILState_Release(state);
  return error;
}

// The copies of ONNX Runtime run without the GIL; it is taken only to record them.
static void record_copy(int64_t start, int64_t end, size_t bytes, int to_device) {
  PyGILState_STATE state;
  if (enter(&state) < 0) return;
  PyObject* done = PyObject_CallFunction(copy_function, "LLni", (long long)start, (long long)end,
                                         (Py_ssize_t)bytes, to_device);
  if (!done) PyErr_WriteUnraisable(copy_function);
  Py_XDECREF(done);
  PyGILState_Release(state);
}

// -- functions ------------------------------------------------------------------------------

// -- graphs ---------------------------------------------------------------------------------

static void* hold_function(void* handle) {
  PyGILState_STATE state;
  if (enter(&state) < 0) return NULL;
  PyObject* function = PyList_GetItem(((python_kernel*)handle)->cell, 0);
  Py_XINCREF(function);
  PyGILState_Release(state);
  return function;
}

static void drop_function(void* function) { Py_DECREF((PyObject*)function); }

static int is_current(void* handle, void* function) {
  return PyList_GetItem(((python_kernel*)handle)->cell, 0) == function;
}

static void release_graphs(uint32_t session, int gpu_graph_id) {
  PyGILState_STATE state;
  if (enter(&state) < 0) return;
  PyObject* done = PyObject_CallFunction(release_function, "Ii", session, gpu_graph_id);
  if (!done) PyErr_WriteUnraisable(release_function);
  Py_XDECREF(done);
  PyGILState_Release(state);
}

static void* enter_replay(void) {
  PyGILState_STATE* state = malloc(sizeof *state);
  if (state && enter(state) == 0) return state;
  free(state);
  return NULL;
}

static void leave_replay(void* entered) {
  PyGILState_Release(*(PyGILState_STATE*)entered);
  free(entered);
}

static int64_t begin_replay(const ep_graph* graph) {
  PyGILState_STATE state;
  if (enter(&state) < 0) return -1;
  PyObject* described = describe_graph(graph);
  PyObject* stream =
      described ? PyObject_CallFunctionObjArgs(replay_function, described, NULL) : NULL;
  int64_t number = stream ? PyLong_AsLongLong(stream) : -1;
  if (PyErr_Occurred()) PyErr_WriteUnraisable(replay_function);
  Py_XDECREF(described);
  Py_XDECREF(stream);
  PyGILState_Release(state);
  return number;
}

static void end_replay(const ep_replay_record* replay, int64_t start, int64_t end) {
  PyObject* done = PyObject_CallFunction(end_replay_function, "NLL", describe_replay(replay),
                                         (long long)start, (long long)end);
  if (!done) PyErr_WriteUnraisable(end_replay_function);
  Py_XDECREF(done);
}

static void leave_kept_stream(void) {
  PyGILState_STATE state;
  if (enter(&state) < 0) return;
  device_leave_kept_stream();
  PyGILState_Release(state);
}

static void without_gil(void (*work)(void*), void* data) {
  PyGILState_STATE state;
  if (enter(&state) < 0) return work(data);
  Py_BEGIN_ALLOW_THREADS
  work(data);
  Py_END_ALLOW_THREADS
  PyGILState_Release(state);
}

static const ep_interpreter interpreter = {
    open_session, release_definition, limit_of, create_kernel, release_kernel, compute, record_copy,
    hold_function, drop_function, is_current,     release_graphs, begin_replay, end_replay,
    enter_replay,  leave_replay,  device_of_kept_stream, leave_kept_stream, without_gil};

static PyObject* ep_set_functions(PyObject* Py_UNUSED(m), PyObject* args) {
  PyObject *open, *limit, *node, *error, *record, *copy, *replay, *end, *release;
  if (!PyArg_ParseTuple(args, "OOOOOOOOO", &open, &limit, &node, &error, &record, &copy, &replay,
                        &end, &release) ||
      numpy_load() < 0) {
    return NULL;
  }
  Py_INCREF(open);
  Py_INCREF(limit);
  Py_INCREF(node);
  Py_INCREF(error);
  Py_INCREF(record);
  Py_INCREF(copy);
  Py_INCREF(replay);
  Py_INCREF(end);
  Py_INCREF(release);
  open_function = open;  // never released: a session may be about to call the previous ones
  limit_function = limit;
  node_function = node;
  error_function = error;
  record_function = record;
  copy_function = copy;
  replay_function = replay;
  end_replay_function = end;
  release_function = release;
  ep_set_interpreter(&interpreter);
  Py_RETURN_NONE;
}

static PyObject* add_dtype(PyObject* Py_UNUSED(m), PyObject* args) {
  int onnx_type, type;
  if (!PyArg_ParseTuple(args, "ii", &onnx_type, &type)) return NULL;
  if (numpy_add_type(onnx_type, type) == 0) Py_RETURN_NONE;
  return PyErr_Format(PyExc_ValueError, "%d is not the number of a type of ml_dtypes", onnx_type);
}

static PyObject* session_options_type(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  const char* name;
  const void* type = ep_session_options_type(&name);
  return PyCapsule_New((void*)type, name, NULL);
}

static const char kDomainCapsule[] = "epprof_nb.ep_domain";

static int add_operator(ep_domain* domain, PyObject* operator) {
  const char* op_type;
  PyObject *inputs, *optional, *outputs, *handle;
  size_t numbers[3][kMaxNumbers], count[3];
  if (!PyArg_ParseTuple(operator, "sOOOO", &op_type, &inputs, &optional, &outputs, &handle) ||
      numbers_of(inputs, numbers[0], &count[0]) < 0 ||
      numbers_of(optional, numbers[1], &count[1]) < 0 ||
      numbers_of(outputs, numbers[2], &count[2]) < 0) {
    return -1;
  }
  int32_t input_types[kMaxNumbers], output_types[kMaxNumbers];
  int is_optional[kMaxNumbers];
  for (size_t i = 0; i < count[0]; i++) {
    input_types[i] = (int32_t)numbers[0][i];
    is_optional[i] = i < count[1] && numbers[1][i];
  }
  for (size_t i = 0; i < count[2]; i++) output_types[i] = (int32_t)numbers[2][i];
  Py_INCREF(handle);  // for as long as the domain lives
  char* failed = ep_domain_add_operator(domain, op_type, input_types, is_optional, count[0],
                                        output_types, count[2], handle);
  if (!failed) return 0;
  raise_message(failed);
  return -1;
}

static PyObject* make_domain(PyObject* Py_UNUSED(m), PyObject* args) {
  const char* name;
  PyObject* operators;
  ep_domain* domain = NULL;
  if (!PyArg_ParseTuple(args, "sO!", &name, &PyTuple_Type, &operators)) return NULL;
  char* failed = ep_domain_new(name, &domain);
  if (failed) return raise_message(failed);
  for (Py_ssize_t i = 0; i < PyTuple_Size(operators); i++) {
    if (add_operator(domain, PyTuple_GetItem(operators, i)) < 0) return NULL;
  }
  return PyCapsule_New(domain, kDomainCapsule, NULL);
}

static PyObject* add_domain(PyObject* Py_UNUSED(m), PyObject* args) {
  PyObject *options, *capsule;
  if (!PyArg_ParseTuple(args, "OO", &options, &capsule)) return NULL;
  void* pointer = PyCapsule_GetPointer(options, PyCapsule_GetName(options));
  ep_domain* domain = PyCapsule_GetPointer(capsule, kDomainCapsule);
  if (!pointer || !domain) return NULL;
  char* failed = ep_domain_add_to(domain, pointer);
  if (failed) return raise_message(failed);
  Py_RETURN_NONE;
}

PyMethodDef ep_functions[] = {
    {"ep_make_kernels", make_kernels, METH_VARARGS, NULL},
    {"ep_make_domain", make_domain, METH_VARARGS, NULL},
    {"ep_add_domain", add_domain, METH_VARARGS, NULL},
    {"ep_set_functions", ep_set_functions, METH_VARARGS, NULL},
    {"ep_add_dtype", add_dtype, METH_VARARGS, NULL},
    {"ep_session_options_type", session_options_type, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
