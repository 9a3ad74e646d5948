// The Python module _native, in the limited API of 3.11, and its functions over core/api.h.
#include "python/convert.h"
#include "python/greenlet_switches.h"
#include "python/interrupts.h"
#include "python/recorded_module.h"

#include <stdlib.h>
#include <string.h>

extern PyMethodDef analysis_functions[], backward_functions[], cupti_functions[];
extern PyMethodDef delay_functions[], device_functions[];
extern PyMethodDef ep_functions[], frame_functions[], graph_functions[], greenlet_functions[];
extern PyMethodDef lock_functions[], marker_functions[], model_functions[];
extern PyMethodDef collection_functions[], compiled_functions[], cost_functions[];
extern PyMethodDef live_object_functions[];
extern PyMethodDef nvtx_functions[];
extern PyMethodDef ort_functions[], product_functions[];
extern PyMethodDef sample_functions[];
extern PyMethodDef stack_functions[];
extern PyMethodDef stretch_functions[], torch_functions[], vectorcall_functions[];

// Chunks of 32 KiB with records of ops, and of launches, in a session: 1 GiB of each.
enum { kMaxOpChunks = 32768, kMaxLaunchChunks = 32768 };

// -- clock, recording, names ----------------------------------------------------------------

static PyObject* now_ns(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromLongLong(epprof_now_ns());
}

static PyObject* thread_id(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromUnsignedLongLong(epprof_thread_id());
}

static PyObject* set_recording(PyObject* Py_UNUSED(m), PyObject* args, PyObject* kwargs) {
  static char* names[] = {"ops", "launches", NULL};
  int ops, launches;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$pp", names, &ops, &launches)) return NULL;
  if (ops != epprof_recording_ops() && op_start_session() < 0) return NULL;
  epprof_set_recording(ops, launches);
  Py_RETURN_NONE;
}

static PyObject* set_limits(PyObject* Py_UNUSED(m), PyObject* args, PyObject* kwargs) {
  static char* names[] = {"op_chunks", "launch_chunks", "statement_rows", "statement_repeats",
                          "statement_pairs", NULL};
  unsigned int op_chunks = kMaxOpChunks, launch_chunks = kMaxLaunchChunks;
  unsigned int rows = kStatementRows, repeats = kStatementRepeats, pairs = kStatementPairs;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$IIIII", names, &op_chunks, &launch_chunks,
                                   &rows, &repeats, &pairs)) {
    return NULL;
  }
  epprof_set_limits(op_chunks, launch_chunks, rows, repeats, pairs);
  Py_RETURN_NONE;
}

static PyObject* set_cell_thread(PyObject* Py_UNUSED(m), PyObject* value) {
  int on = PyObject_IsTrue(value);
  if (on < 0) return NULL;
  epprof_set_cell_thread(on);
  Py_RETURN_NONE;
}

static PyObject* leave_out_statements(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(args)) {
  epprof_leave_out_statements();
  Py_RETURN_NONE;
}

static PyObject* leave_out_thread(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(args)) {
  epprof_leave_out_thread();
  epprof_leave_out_lock_waits(1);
  Py_RETURN_NONE;
}

static PyObject* intern_name(PyObject* Py_UNUSED(m), PyObject* name) {
  PyObject* bytes = PyUnicode_AsEncodedString(name, "utf-8", "backslashreplace");
  char* text;
  Py_ssize_t length;
  if (!bytes || PyBytes_AsStringAndSize(bytes, &text, &length) < 0) {
    Py_XDECREF(bytes);
    return NULL;
  }
  uint32_t id = epprof_intern(text, (size_t)length);
  Py_DECREF(bytes);
  return PyLong_FromUnsignedLong(id);
}

static void append_name(const char* text, size_t length, void* data) {
  PyObject** list = data;
  if (!*list) return;
  PyObject* name = PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "backslashreplace");
  if (!name || PyList_Append(*list, name) < 0) Py_CLEAR(*list);
  Py_XDECREF(name);
}

static PyObject* names(PyObject* Py_UNUSED(m), PyObject* args) {
  unsigned int first = 0;
  if (!PyArg_ParseTuple(args, "|I", &first)) return NULL;
  PyObject* list = PyList_New(0);
  epprof_strings_from(first, append_name, &list);
  return list;
}

static PyObject* demangle(PyObject* Py_UNUSED(m), PyObject* name) {
  PyObject* bytes = PyUnicode_AsUTF8String(name);
  if (!bytes) return NULL;
  char* text = epprof_demangle(PyBytes_AsString(bytes));
  Py_DECREF(bytes);
  if (!text) {
    Py_INCREF(name);
    return name;
  }
  PyObject* result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
  free(text);
  return result;
}

// -- op stack -------------------------------------------------------------------------------

// Reads up to three numbers: name, category and payload. PyArg_ParseTuple would take most of the time
// of a call.
static int op_numbers(PyObject* const* args, Py_ssize_t count, uint32_t numbers[3]) {
  if (count < 2 || count > 3) {
    PyErr_SetString(PyExc_TypeError, "push() takes a name id, a category and a payload id");
    return -1;
  }
  numbers[2] = 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (to_u32(args[i], &numbers[i]) < 0) return -1;
  }
  return 0;
}

static PyObject* push(PyObject* Py_UNUSED(m), PyObject* const* args, Py_ssize_t count) {
  uint32_t numbers[3];
  if (op_numbers(args, count, numbers) < 0) return NULL;
  see_greenlet();
  return PyLong_FromUnsignedLongLong(
      epprof_push(numbers[0], (uint16_t)numbers[1], numbers[2], NULL, 0));
}

static PyObject* push_suspendable(PyObject* Py_UNUSED(m), PyObject* const* args,
                                  Py_ssize_t count) {
  uint32_t numbers[3];
  uint64_t frame = 0;
  if (op_numbers(args, count, numbers) < 0) return NULL;
  if (epprof_recording_ops() && (resume_unseen_frame() < 0 || suspendable_frame(&frame) < 0)) {
    return NULL;
  }
  see_greenlet();
  return PyLong_FromUnsignedLongLong(
      epprof_push(numbers[0], (uint16_t)numbers[1], numbers[2], NULL, frame));
}

static PyObject* push_worker(PyObject* Py_UNUSED(m), PyObject* args) {
  unsigned int name, category, payload_id;
  unsigned long long parent;
  if (!PyArg_ParseTuple(args, "IIIK", &name, &category, &payload_id, &parent)) return NULL;
  return PyLong_FromUnsignedLongLong(
      epprof_push_worker(name, (uint16_t)category, payload_id, parent));
}

static PyObject* pop(PyObject* Py_UNUSED(m), PyObject* value) {
  uint64_t op_id;
  if (to_u64(value, &op_id) < 0) return NULL;
  return PyBool_FromLong(epprof_pop(op_id));
}

static PyObject* pop_of_any_thread(PyObject* Py_UNUSED(m), PyObject* value) {
  uint64_t op_id;
  if (to_u64(value, &op_id) < 0) return NULL;
  return PyBool_FromLong(epprof_pop_of_any_thread(op_id));
}

static PyObject* top(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromUnsignedLongLong(epprof_top());
}

static PyObject* reserve_op_ids(PyObject* Py_UNUSED(m), PyObject* value) {
  uint64_t count;
  if (to_u64(value, &count) < 0) return NULL;
  return PyLong_FromUnsignedLongLong(epprof_reserve_op_ids(count));
}

static PyObject* depth(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromUnsignedLong(epprof_depth());
}

static PyObject* add_statements(PyObject* Py_UNUSED(m), PyObject* args) {
  const char *parents, *names;
  Py_ssize_t parent_bytes, name_bytes;
  if (!PyArg_ParseTuple(args, "y#y#", &parents, &parent_bytes, &names, &name_bytes)) return NULL;
  if (parent_bytes != name_bytes || parent_bytes % 4) {
    PyErr_SetString(PyExc_ValueError, "parents (int32) and names (uint32) differ in length");
    return NULL;
  }
  uint32_t first = epprof_add_statements((const int32_t*)parents, (const uint32_t*)names,
                                     (size_t)parent_bytes / 4);
  if (first == UINT32_MAX) {
    PyErr_SetString(PyExc_RuntimeError, "The process has too many instrumented statements. "
                                        "Restart it to profile more cells.");
    return NULL;
  }
  return PyLong_FromUnsignedLong(first);
}

// -- logs -----------------------------------------------------------------------------------

static PyObject* drain_ops(PyObject* Py_UNUSED(m), PyObject* args, PyObject* kwargs) {
  static char* names[] = {"", "open_too", NULL};
  long long end;
  int open_too;
  uint64_t counts[2];
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "L$p", names, &end, &open_too)) return NULL;
  PyObject* dict = columns_to_dict(epprof_drain_ops(end, open_too, counts));
  if (dict && op_add_session(dict) < 0) Py_CLEAR(dict);
  return add_count(add_count(dict, "lost", counts[0]), "unmarked", counts[1]);
}

static PyObject* drain_launches(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  uint64_t lost;
  PyObject* dict = columns_to_dict(epprof_drain_launches(&lost));
  return add_count(dict, "lost", lost);
}

static PyObject* drain_node_usage(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return columns_to_dict(epprof_drain_node_usage());
}

static PyObject* drain_op_stacks(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return columns_to_dict(epprof_drain_op_stacks());
}

static PyObject* ended_threads(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return columns_to_dict(epprof_ended_threads());
}

static PyObject* start_cell_log(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  epprof_start_cell_log();
  Py_RETURN_NONE;
}

static PyObject* stop_cell_log(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  Py_BEGIN_ALLOW_THREADS
  epprof_stop_cell_log();
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

static PyObject* take_cell_log(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  uint64_t thread;
  PyObject* dict = columns_to_dict(epprof_take_cell_log(&thread));
  return add_count(dict, "thread_id", thread);
}

static PyObject* launch(PyObject* Py_UNUSED(m), PyObject* args) {
  unsigned int name;
  long long start, end;
  unsigned long long correlation;
  if (!PyArg_ParseTuple(args, "ILLK", &name, &start, &end, &correlation)) return NULL;
  epprof_log_host_call(name, start, end, correlation);
  Py_RETURN_NONE;
}

static PyObject* next_correlation(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromUnsignedLongLong(epprof_next_correlation());
}

static PyObject* counters(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  uint64_t state[4];
  epprof_pool_state(state);
  return Py_BuildValue("{sKsKsKsK}", "op_chunks", state[0], "op_chunks_bound", state[1],
                       "launch_chunks", state[2], "launch_chunks_bound", state[3]);
}

extern int add_markers_type(PyObject* module);
extern int watched_signals_add(PyObject* module);
extern int context_type_create(PyObject* module);

static PyMethodDef functions[] = {
    {"now_ns", now_ns, METH_NOARGS, NULL},
    {"thread_id", thread_id, METH_NOARGS, NULL},
    {"set_recording", KEYWORDS(set_recording), NULL},
    {"set_limits", KEYWORDS(set_limits), NULL},
    {"set_cell_thread", set_cell_thread, METH_O, NULL},
    {"leave_out_statements", leave_out_statements, METH_NOARGS, NULL},
    {"leave_out_thread", leave_out_thread, METH_NOARGS, NULL},
    {"task", KEYWORDS(op_task), NULL},
    {"set_decorator", op_set_decorator, METH_O, NULL},
    {"set_suspender", op_set_suspender, METH_O, NULL},
    {"set_hooks", op_set_hooks, METH_VARARGS, NULL},
    {"spin", op_spin, METH_VARARGS, NULL},
    {"set_args_formatter", op_set_args_formatter, METH_O, NULL},
    {"intern", intern_name, METH_O, NULL},
    {"names", names, METH_VARARGS, NULL},
    {"demangle", demangle, METH_O, NULL},
    {"push", (PyCFunction)(void (*)(void))push, METH_FASTCALL, NULL},
    {"push_suspendable", (PyCFunction)(void (*)(void))push_suspendable, METH_FASTCALL, NULL},
    {"push_worker", push_worker, METH_VARARGS, NULL},
    {"pop", pop, METH_O, NULL},
    {"pop_of_any_thread", pop_of_any_thread, METH_O, NULL},
    {"top", top, METH_NOARGS, NULL},
    {"reserve_op_ids", reserve_op_ids, METH_O, NULL},
    {"depth", depth, METH_NOARGS, NULL},
    {"add_statements", add_statements, METH_VARARGS, NULL},
    {"drain_ops", KEYWORDS(drain_ops), NULL},
    {"drain_launches", drain_launches, METH_NOARGS, NULL},
    {"drain_node_usage", drain_node_usage, METH_NOARGS, NULL},
    {"drain_op_stacks", drain_op_stacks, METH_NOARGS, NULL},
    {"ended_threads", ended_threads, METH_NOARGS, NULL},
    {"start_cell_log", start_cell_log, METH_NOARGS, NULL},
    {"stop_cell_log", stop_cell_log, METH_NOARGS, NULL},
    {"take_cell_log", take_cell_log, METH_NOARGS, NULL},
    {"launch", launch, METH_VARARGS, NULL},
    {"next_correlation", next_correlation, METH_NOARGS, NULL},
    {"counters", counters, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int execute(PyObject* module) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    PyErr_SetString(PyExc_ImportError,
                    "epprof_nb works in Python's main interpreter only, because it records the "
                    "work of the whole process. Import it there instead of in a sub-interpreter.");
    return -1;
  }
  PyObject* type = op_type_create(module);
  if (!type) return -1;
  int failed = PyModule_AddObjectRef(module, "Op", type);
  if (!failed) failed = PyModule_AddFunctions(module, marker_functions);
  if (!failed) failed = add_markers_type(module);
  if (!failed) failed = PyModule_AddFunctions(module, frame_functions);
  if (!failed) failed = PyModule_AddFunctions(module, collection_functions);
  if (!failed) failed = PyModule_AddFunctions(module, cost_functions);
  if (!failed) failed = PyModule_AddFunctions(module, live_object_functions);
  if (!failed) failed = PyModule_AddFunctions(module, lock_functions);
  if (!failed) failed = PyModule_AddFunctions(module, greenlet_functions);
  if (!failed) failed = PyModule_AddFunctions(module, cupti_functions);
  if (!failed) failed = PyModule_AddFunctions(module, backward_functions);
  if (!failed) failed = PyModule_AddFunctions(module, compiled_functions);
  if (!failed) failed = PyModule_AddFunctions(module, model_functions);
  if (!failed) failed = PyModule_AddFunctions(module, nvtx_functions);
  if (!failed) failed = PyModule_AddFunctions(module, ort_functions);
  if (!failed) failed = PyModule_AddFunctions(module, product_functions);
  if (!failed) failed = PyModule_AddFunctions(module, torch_functions);
  if (!failed) failed = PyModule_AddFunctions(module, sample_functions);
  if (!failed) failed = PyModule_AddFunctions(module, stack_functions);
  if (!failed) failed = PyModule_AddFunctions(module, stretch_functions);
  if (!failed) failed = PyModule_AddFunctions(module, vectorcall_functions);
  if (!failed) failed = interrupts_add(module);
  if (!failed) failed = watched_signals_add(module);
  if (!failed) failed = PyModule_AddFunctions(module, ep_functions);
  if (!failed) failed = PyModule_AddFunctions(module, delay_functions);
  if (!failed) failed = PyModule_AddFunctions(module, device_functions);
  if (!failed) failed = PyModule_AddFunctions(module, analysis_functions);
  if (!failed) failed = PyModule_AddFunctions(module, graph_functions);
  if (!failed) failed = context_type_create(module);
  if (!failed) failed = recorded_module_type_create(module);
  Py_DECREF(type);
  if (failed) return failed;
  PyObject* none = PyTuple_New(0);
  PyObject* done = none ? set_limits(NULL, none, NULL) : NULL;
  Py_XDECREF(none);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "The native core of epprof_nb.", 0, functions, slots,
    NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
