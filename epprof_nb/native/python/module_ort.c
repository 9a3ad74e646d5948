// The functions of _native over ort/api.h.
#include "python/convert.h"

#include <stdlib.h>
#include <string.h>

#include "ort/api.h"

static PyObject* ort_runtime(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyUnicode_FromString(epprof_ort_runtime());
}

static PyObject* ort_new_session(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromUnsignedLong(epprof_ort_new_session());
}

static PyObject* ort_begin_session(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  epprof_ort_begin_session();
  Py_RETURN_NONE;
}

static PyObject* ort_end_session(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromUnsignedLong(epprof_ort_end_session());
}

static PyObject* ort_profile_run(PyObject* Py_UNUSED(m), PyObject* args) {
  PyObject* capsule;
  const char* prefix;
  if (!PyArg_ParseTuple(args, "Oz", &capsule, &prefix)) return NULL;
  void* options = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
  if (!options) return NULL;
  char* failed = epprof_ort_profile_run(options, prefix);
  if (failed) return raise_message(failed);
  Py_RETURN_NONE;
}

static PyObject* ort_add_device_event(PyObject* Py_UNUSED(m), PyObject* arguments) {
  enum { kMaxTexts = 32 };
  unsigned int session;
  unsigned long long run_op;
  int thread, is_call;
  long long start, duration;
  const char* name;
  PyObject* args;
  if (!PyArg_ParseTuple(arguments, "IKpsLLiO!", &session, &run_op, &is_call, &name, &start, &duration,
                        &thread, &PyTuple_Type, &args)) {
    return NULL;
  }
  const char* texts[kMaxTexts];
  Py_ssize_t count = PyTuple_Size(args);
  if (count > kMaxTexts || count % 2) {
    PyErr_SetString(PyExc_ValueError, "args must alternate keys and values, at most 16 pairs");
    return NULL;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    texts[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(args, i), NULL);
    if (!texts[i]) return NULL;
  }
  epprof_ort_add_device_event(session, run_op, is_call, name, start, duration, thread, texts,
                              (size_t)count);
  Py_RETURN_NONE;
}

// Called without the GIL on the thread of an ONNX Runtime run.
static PyObject *on_file_opened, *on_file_ending;

static void call_back(PyObject* function, uint32_t session, uint64_t run_op) {
  if (!Py_IsInitialized()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject* done = PyObject_CallFunction(function, "IK", (unsigned)session,
                                         (unsigned long long)run_op);
  if (!done) PyErr_WriteUnraisable(function);
  Py_XDECREF(done);
  PyGILState_Release(state);
}

static void file_opened(void) { call_back(on_file_opened, 0, 0); }

static void file_ending(uint32_t session, uint64_t run_op) {
  call_back(on_file_ending, session, run_op);
}

static PyObject* ort_on_run_file(PyObject* Py_UNUSED(m), PyObject* args) {
  PyObject *opened, *ending;
  if (!PyArg_ParseTuple(args, "OO", &opened, &ending)) return NULL;
  Py_INCREF(opened);
  Py_INCREF(ending);
  on_file_opened = opened;  // never released: a run may be about to call the previous ones
  on_file_ending = ending;
  epprof_ort_on_run_file(file_opened, file_ending);
  Py_RETURN_NONE;
}

// Functions by the name of a node; null: none.
static PyObject* node_hooks;

// Called without the GIL on the thread of a node.
static void node_ended(const char* name, size_t length) {
  if (!Py_IsInitialized()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject* key = PyUnicode_DecodeUTF8(name, (Py_ssize_t)length, "replace");
  PyObject* hook = key && node_hooks ? PyDict_GetItemWithError(node_hooks, key) : NULL;
  Py_XINCREF(hook);  // it may remove the hooks
  PyObject* done = hook ? PyObject_CallFunctionObjArgs(hook, NULL) : NULL;
  if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
    PyErr_Clear();
    PyErr_SetInterrupt();  // for the code that called the session
  }
  if (PyErr_Occurred()) PyErr_WriteUnraisable(hook);
  Py_XDECREF(done);
  Py_XDECREF(hook);
  Py_XDECREF(key);
  PyGILState_Release(state);
}

static PyObject* ort_set_node_hooks(PyObject* Py_UNUSED(m), PyObject* hooks) {
  if (hooks != Py_None && !PyDict_CheckExact(hooks)) {
    PyErr_Format(PyExc_TypeError, "the hooks must be a dict or None, not %R", hooks);
    return NULL;
  }
  Py_ssize_t count = hooks == Py_None ? 0 : PyDict_Size(hooks), at = 0, position = 0;
  const char** names = calloc((size_t)count + 1, sizeof *names);
  if (!names) return PyErr_NoMemory();
  for (PyObject *name, *hook; at < count && PyDict_Next(hooks, &position, &name, &hook);) {
    if (!(names[at++] = PyUnicode_AsUTF8AndSize(name, NULL))) break;
  }
  if (!PyErr_Occurred()) {
    PyObject* old = node_hooks;
    if (count) Py_INCREF(hooks);
    node_hooks = count ? hooks : NULL;
    epprof_ort_on_node_end(count ? node_ended : NULL, names, (size_t)count);
    Py_XDECREF(old);
  }
  free(names);
  if (PyErr_Occurred()) return NULL;
  Py_RETURN_NONE;
}

static PyObject* ort_expect_run_file(PyObject* Py_UNUSED(m), PyObject* value) {
  int expected = PyObject_IsTrue(value);
  if (expected < 0) return NULL;
  epprof_ort_expect_run_file(expected);
  Py_RETURN_NONE;
}

static PyObject* ort_nodes_of_last_run(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromLong(epprof_ort_nodes_of_last_run());
}

static PyObject* ort_begin_run(PyObject* Py_UNUSED(m), PyObject* value) {
  uint32_t session;
  if (to_u32(value, &session) < 0) return NULL;
  return PyLong_FromUnsignedLongLong(epprof_ort_begin_run(session));
}

static PyObject* ort_end_run(PyObject* Py_UNUSED(m), PyObject* value) {
  unsigned long long op_id = PyLong_AsUnsignedLongLong(value);
  if (PyErr_Occurred()) return NULL;
  epprof_ort_end_run(op_id);
  Py_RETURN_NONE;
}

static PyObject* ort_end_refused_run(PyObject* Py_UNUSED(m), PyObject* args) {
  unsigned int session;
  long long since_ns;
  if (!PyArg_ParseTuple(args, "IL", &session, &since_ns)) return NULL;
  epprof_ort_end_refused_run(session, since_ns);
  Py_RETURN_NONE;
}

static PyObject* ort_observe_run(PyObject* Py_UNUSED(m), PyObject* value) {
  uint32_t session;
  if (to_u32(value, &session) < 0) return NULL;
  epprof_ort_observe_run(session);
  Py_RETURN_NONE;
}

static PyObject* ort_take_run(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  uint64_t run[6];
  epprof_ort_take_run(run);
  return Py_BuildValue("KKKKOO", (unsigned long long)run[0], (unsigned long long)run[1],
                       (unsigned long long)run[2], (unsigned long long)run[3],
                       run[4] ? Py_True : Py_False, run[5] ? Py_True : Py_False);
}

static PyObject* ort_run_options_type(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  const char* name;
  const void* type = epprof_ort_run_options_type(&name);
  return PyCapsule_New((void*)type, name, NULL);
}

static PyObject* ort_allocator_statistics(PyObject* Py_UNUSED(m), PyObject* args) {
  unsigned long long session;
  const char* memory;
  int device_type, device, failed;
  unsigned int vendor;
  if (!PyArg_ParseTuple(args, "KsiIi", &session, &memory, &device_type, &vendor, &device)) {
    return NULL;
  }
  char* text = epprof_ort_allocator_statistics((const void*)(uintptr_t)session, memory, device_type,
                                               vendor, device, &failed);
  if (failed) return raise_message(text);
  PyObject* lines = PyUnicode_FromString(text);
  free(text);
  return lines;
}

static PyObject* ort_event_details(PyObject* Py_UNUSED(m), PyObject* value) {
  uint32_t first;
  if (to_u32(value, &first) < 0) return NULL;
  return columns_to_dict(epprof_ort_event_details(first));
}

PyMethodDef ort_functions[] = {
    {"ort_runtime", ort_runtime, METH_NOARGS, NULL},
    {"ort_new_session", ort_new_session, METH_NOARGS, NULL},
    {"ort_begin_session", ort_begin_session, METH_NOARGS, NULL},
    {"ort_end_session", ort_end_session, METH_NOARGS, NULL},
    {"ort_profile_run", ort_profile_run, METH_VARARGS, NULL},
    {"ort_add_device_event", ort_add_device_event, METH_VARARGS, NULL},
    {"ort_on_run_file", ort_on_run_file, METH_VARARGS, NULL},
    {"ort_set_node_hooks", ort_set_node_hooks, METH_O, NULL},
    {"ort_expect_run_file", ort_expect_run_file, METH_O, NULL},
    {"ort_nodes_of_last_run", ort_nodes_of_last_run, METH_NOARGS, NULL},
    {"ort_begin_run", ort_begin_run, METH_O, NULL},
    {"ort_end_run", ort_end_run, METH_O, NULL},
    {"ort_end_refused_run", ort_end_refused_run, METH_VARARGS, NULL},
    {"ort_observe_run", ort_observe_run, METH_O, NULL},
    {"ort_take_run", ort_take_run, METH_NOARGS, NULL},
    {"ort_run_options_type", ort_run_options_type, METH_NOARGS, NULL},
    {"ort_allocator_statistics", ort_allocator_statistics, METH_VARARGS, NULL},
    {"ort_event_details", ort_event_details, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
