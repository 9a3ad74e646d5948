// The functions of _native over ep/api.h.
#include "python/kernel_calls.h"

#include <stdlib.h>
#include <string.h>

#include "python/device_arrays.h"
#include "python/kernel_launches.h"
#include "python/numpy_arrays.h"

enum { kMaxNumbers = 64 };

static int numbers_of(PyObject* tuple, size_t* numbers, size_t* count) {
  Py_ssize_t length = PySequence_Size(tuple);
  if (length > kMaxNumbers) {
    PyErr_Format(PyExc_ValueError, "%zd inputs, outputs or types of an operator; the provider "
                 "takes at most %d", length, kMaxNumbers);
  }
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
  ep_declaration declaration = {0};
  size_t host_inputs[kMaxNumbers], host_outputs[kMaxNumbers];
  PyObject *types, *inputs, *outputs, *handle;
  if (!PyArg_ParseTuple(spec, "ssiiO!OOppO", &declaration.op_type, &declaration.domain,
                        &declaration.first_version, &declaration.last_version, &PyDict_Type, &types,
                        &inputs, &outputs, &declaration.has_limits, &declaration.is_view,
                        &handle) ||
      numbers_of(inputs, host_inputs, &declaration.host_input_count) < 0 ||
      numbers_of(outputs, host_outputs, &declaration.host_output_count) < 0) {
    return -1;
  }
  declaration.host_inputs = host_inputs;
  declaration.host_outputs = host_outputs;
  Py_INCREF(handle);
  ep_kernels_add(kernels, &declaration, handle);
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

static void release_handle(void* handle) {
  PyGILState_STATE state;
  if (enter_python(&state) < 0) return;
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

static int select_names(ep_session_plan* plan, PyObject* names,
                        void (*select)(ep_session_plan*, const char*)) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(names); i++) {
    const char* name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, i), NULL);
    if (!name) return -1;
    select(plan, name);
  }
  return 0;
}

static int build_plan(int device, const char* const* keys, const char* const* values,
                      size_t count, ep_session_plan* plan) {
  PyObject* options = PyDict_New();
  for (size_t i = 0; options && i < count; i++) {
    PyObject* value = PyUnicode_FromString(values[i]);
    if (!value || PyDict_SetItemString(options, keys[i], value) < 0) Py_CLEAR(options);
    Py_XDECREF(value);
  }
  PyObject* result =
      options ? PyObject_CallFunction(python_functions.open_session, "Oi", options, device) : NULL;
  Py_XDECREF(options);
  if (!result) return -1;
  unsigned int session;
  int graphs;
  unsigned long long stream;
  PyObject *types, *nodes, *capsule;
  int failed = !PyArg_ParseTuple(result, "IpKO!O!O", &session, &graphs, &stream, &PyTuple_Type,
                                 &types, &PyTuple_Type, &nodes, &capsule);
  ep_kernels* kernels = failed ? NULL : PyCapsule_GetPointer(capsule, kKernelsCapsule);
  failed = !kernels;
  if (!failed) {
    ep_session_plan_use_kernels(plan, kernels);
    ep_session_plan_set_session(plan, session);
    if (graphs) ep_session_plan_capture_graphs(plan);
    ep_session_plan_use_stream(plan, (void*)(uintptr_t)stream);
    failed = select_names(plan, types, ep_session_plan_select_type) < 0 ||
             select_names(plan, nodes, ep_session_plan_select_node) < 0;
  }
  Py_DECREF(result);
  return failed ? -1 : 0;
}

static char* open_session(int device, const char* const* keys, const char* const* values,
                          size_t count, ep_session_plan* plan) {
  PyGILState_STATE state;
  if (enter_python(&state) < 0) return python_has_ended();
  char* error = build_plan(device, keys, values, count, plan) < 0 ? take_error(NULL) : NULL;
  PyGILState_Release(state);
  return error;
}

static const char kDomainCapsule[] = "epprof_nb.ep_domain";

static int fill_domains(ep_domain** domains, size_t room, size_t* count) {
  PyObject* listed = PyObject_CallNoArgs(python_functions.list_domains);
  if (!listed) return -1;
  *count = (size_t)PyTuple_Size(listed);
  int failed = PyErr_Occurred() != NULL;
  for (size_t i = 0; !failed && i < room && i < *count; i++) {
    domains[i] = PyCapsule_GetPointer(PyTuple_GetItem(listed, (Py_ssize_t)i), kDomainCapsule);
    failed = !domains[i];
  }
  Py_DECREF(listed);
  return failed ? -1 : 0;
}

static char* list_domains(ep_domain** domains, size_t room, size_t* count) {
  PyGILState_STATE state;
  if (enter_python(&state) < 0) return python_has_ended();
  char* error = fill_domains(domains, room, count) < 0 ? take_error(NULL) : NULL;
  PyGILState_Release(state);
  return error;
}

static void leave_kept_stream(void) {
  PyGILState_STATE state;
  if (enter_python(&state) < 0) return;
  device_leave_kept_stream();
  PyGILState_Release(state);
}

static void without_gil(void (*work)(void*), void* data) {
  PyGILState_STATE state;
  // A thread without a state does not hold the GIL, and the holder may wait for this thread.
  if (!Py_IsInitialized() || !PyGILState_GetThisThreadState()) return work(data);
  if (enter_python(&state) < 0) return work(data);
  Py_BEGIN_ALLOW_THREADS
  work(data);
  Py_END_ALLOW_THREADS
  PyGILState_Release(state);
}

static const ep_interpreter interpreter = {
    open_session,        list_domains,      release_handle,    kernel_limit,        kernel_create,
    kernel_release,      kernel_compute,        kernel_record_copy,  kernel_hold_function,
    kernel_drop_function, kernel_hold_object,   kernel_has_function, kernel_release_graphs,
    kernel_begin_replay, kernel_end_replay,     kernel_enter_replay, kernel_leave_replay,
    device_of_kept_stream, leave_kept_stream,   without_gil,         kernel_end_run};

static PyObject* ep_set_functions(PyObject* Py_UNUSED(m), PyObject* args) {
  kernel_functions given;
  if (!PyArg_ParseTuple(args, "OOOOOOOOOO", &given.open_session, &given.limit_of, &given.make_node,
                        &given.describe_error, &given.record, &given.record_copy,
                        &given.begin_replay, &given.end_replay, &given.release_graphs,
                        &given.list_domains) ||
      numpy_load() < 0) {
    return NULL;
  }
  Py_INCREF(args);  // never released: a session may be about to call the previous ones
  python_functions = given;
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

static PyObject* run_config_entry(PyObject* Py_UNUSED(m), PyObject* args) {
  PyObject* options;
  const char* key;
  if (!PyArg_ParseTuple(args, "Os", &options, &key)) return NULL;
  void* pointer = PyCapsule_GetPointer(options, PyCapsule_GetName(options));
  if (!pointer) return NULL;
  const char* value = ep_run_config_entry(pointer, key);
  if (!value) Py_RETURN_NONE;
  return PyUnicode_DecodeUTF8(value, (Py_ssize_t)strlen(value), "replace");
}

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

static PyObject* register_host_only(PyObject* Py_UNUSED(m), PyObject* host_only) {
  ep_register_host_only(PyObject_IsTrue(host_only) == 1);
  Py_RETURN_NONE;
}

PyMethodDef ep_functions[] = {
    {"ep_register_host_only", register_host_only, METH_O, NULL},
    {"ep_launch", (PyCFunction)(void (*)(void))launch_in_kernel, METH_FASTCALL, NULL},
    {"ep_repeat_nothing", repeat_nothing, METH_NOARGS, NULL},
    {"ep_note_scratch", note_scratch, METH_VARARGS, NULL},
    {"ep_current_node", current_node, METH_NOARGS, NULL},
    {"ep_make_kernels", make_kernels, METH_VARARGS, NULL},
    {"ep_make_domain", make_domain, METH_VARARGS, NULL},
    {"ep_add_domain", add_domain, METH_VARARGS, NULL},
    {"ep_set_functions", ep_set_functions, METH_VARARGS, NULL},
    {"ep_add_dtype", add_dtype, METH_VARARGS, NULL},
    {"ep_session_options_type", session_options_type, METH_NOARGS, NULL},
    {"ep_run_config_entry", run_config_entry, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
