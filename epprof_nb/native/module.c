// The Python module: a thin limited-API (3.11) surface over core.h.
#include "op_object.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "core.h"

static PyObject* raise_message(char* message) {
  PyErr_SetString(PyExc_RuntimeError, message);
  free(message);
  return NULL;
}

static int to_key(PyObject* value, uint32_t* key) {
  unsigned long number = PyLong_AsUnsignedLong(value);
  if (number == (unsigned long)-1 && PyErr_Occurred()) return -1;
  *key = (uint32_t)number;
  return 0;
}

static int to_u64(PyObject* value, uint64_t* number) {
  *number = PyLong_AsUnsignedLongLong(value);
  return *number == (uint64_t)-1 && PyErr_Occurred() ? -1 : 0;
}

// Columns become a dict of bytes; the columns are freed.
static PyObject* to_dict(ep_columns* columns) {
  PyObject* dict = PyDict_New();
  for (size_t i = 0; dict && i < ep_columns_count(columns); i++) {
    PyObject* value = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)ep_columns_bytes(columns, i));
    if (value) ep_columns_copy(columns, i, PyBytes_AsString(value));
    if (!value || PyDict_SetItemString(dict, ep_columns_name(columns, i), value) < 0) {
      Py_CLEAR(dict);
    }
    Py_XDECREF(value);
  }
  ep_columns_free(columns);
  return dict;
}

static PyObject* with_count(PyObject* dict, const char* key, uint64_t count) {
  if (!dict) return NULL;
  PyObject* value = PyLong_FromUnsignedLongLong(count);
  if (!value || PyDict_SetItemString(dict, key, value) < 0) Py_CLEAR(dict);
  Py_XDECREF(value);
  return dict;
}

// -- clock, recording, names ----------------------------------------------------------------

static PyObject* now_ns(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromLongLong(ep_now_ns());
}

static PyObject* thread_id(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromUnsignedLongLong(ep_thread_id());
}

static PyObject* set_recording(PyObject* Py_UNUSED(m), PyObject* args, PyObject* kwargs) {
  static char* names[] = {"ops", "launches", NULL};
  int ops, launches;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$pp", names, &ops, &launches)) return NULL;
  ep_set_recording(ops, launches);
  Py_RETURN_NONE;
}

static PyObject* set_limits(PyObject* Py_UNUSED(m), PyObject* args, PyObject* kwargs) {
  static char* names[] = {"op_chunks", "launch_chunks", "line_rows", "line_repeats", NULL};
  unsigned int op_chunks, launch_chunks, rows, repeats;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$IIII", names, &op_chunks, &launch_chunks, &rows,
                                   &repeats)) {
    return NULL;
  }
  ep_set_limits(op_chunks, launch_chunks, rows, repeats);
  Py_RETURN_NONE;
}

static PyObject* set_cell_thread(PyObject* Py_UNUSED(m), PyObject* value) {
  int on = PyObject_IsTrue(value);
  if (on < 0) return NULL;
  ep_set_cell_thread(on);
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
  uint32_t id = ep_intern(text, (size_t)length);
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
  ep_names_from(first, append_name, &list);
  return list;
}

static PyObject* demangle(PyObject* Py_UNUSED(m), PyObject* name) {
  PyObject* bytes = PyUnicode_AsUTF8String(name);
  if (!bytes) return NULL;
  char* text = ep_demangle(PyBytes_AsString(bytes));
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

static PyObject* push(PyObject* Py_UNUSED(m), PyObject* args) {
  unsigned int name, category, meta = 0;
  if (!PyArg_ParseTuple(args, "II|I", &name, &category, &meta)) return NULL;
  return PyLong_FromUnsignedLongLong(ep_push(name, (uint16_t)category, meta, NULL, 0));
}

static PyObject* pop(PyObject* Py_UNUSED(m), PyObject* value) {
  uint64_t op_id;
  if (to_u64(value, &op_id) < 0) return NULL;
  return PyBool_FromLong(ep_pop(op_id));
}

static PyObject* top(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromUnsignedLongLong(ep_top());
}

static PyObject* depth(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromUnsignedLong(ep_depth());
}

static PyObject* add_statements(PyObject* Py_UNUSED(m), PyObject* args) {
  const char *parents, *names;
  Py_ssize_t parent_bytes, name_bytes;
  if (!PyArg_ParseTuple(args, "y#y#", &parents, &parent_bytes, &names, &name_bytes)) return NULL;
  if (parent_bytes != name_bytes || parent_bytes % 4) {
    PyErr_SetString(PyExc_ValueError, "parents (int32) and names (uint32) must match in length");
    return NULL;
  }
  uint32_t first = ep_add_statements((const int32_t*)parents, (const uint32_t*)names,
                                     (size_t)parent_bytes / 4);
  if (first == UINT32_MAX) {
    PyErr_SetString(PyExc_RuntimeError, "too many statements in this process");
    return NULL;
  }
  return PyLong_FromUnsignedLong(first);
}

static PyObject* line(PyObject* Py_UNUSED(m), PyObject* value) {
  uint32_t key;
  if (!ep_recording_ops()) Py_RETURN_NONE;
  if (to_key(value, &key) < 0) return NULL;
  ep_line(key);
  Py_RETURN_NONE;
}

static PyObject* back(PyObject* Py_UNUSED(m), PyObject* value) {
  uint32_t key;
  if (!ep_recording_ops()) Py_RETURN_NONE;
  if (to_key(value, &key) < 0) return NULL;
  ep_back(key);
  Py_RETURN_NONE;
}

static PyObject* enter(PyObject* Py_UNUSED(m), PyObject* value) {
  uint32_t key;
  if (!ep_recording_ops()) Py_RETURN_NONE;
  if (to_key(value, &key) < 0) return NULL;
  ep_enter(key, 0);
  Py_RETURN_NONE;
}

static PyObject* leave(PyObject* Py_UNUSED(m), PyObject* value) {
  uint32_t key;
  if (!ep_recording_ops()) Py_RETURN_NONE;
  if (to_key(value, &key) < 0) return NULL;
  ep_leave(key, 0);
  Py_RETURN_NONE;
}

static PyObject* enter_frame(PyObject* Py_UNUSED(m), PyObject* value) {
  uint32_t key;
  int failed;
  if (!ep_recording_ops()) Py_RETURN_NONE;
  if (to_key(value, &key) < 0) return NULL;
  uint64_t frame = suspendable_frame(&failed);
  if (failed) return NULL;
  ep_enter(key, frame);
  Py_RETURN_NONE;
}

static PyObject* leave_frame(PyObject* Py_UNUSED(m), PyObject* value) {
  uint32_t key;
  int failed;
  if (!ep_recording_ops()) Py_RETURN_NONE;
  if (to_key(value, &key) < 0) return NULL;
  uint64_t frame = suspendable_frame(&failed);
  if (failed) return NULL;
  ep_leave(key, frame);
  Py_RETURN_NONE;
}

static PyObject* suspend(PyObject* Py_UNUSED(m), PyObject* value) {
  uint64_t frame;
  if (to_u64(value, &frame) < 0) return NULL;
  ep_suspend(frame);
  Py_RETURN_NONE;
}

static PyObject* resume(PyObject* Py_UNUSED(m), PyObject* value) {
  uint64_t frame;
  if (to_u64(value, &frame) < 0) return NULL;
  ep_resume(frame);
  Py_RETURN_NONE;
}

static PyObject* forget(PyObject* Py_UNUSED(m), PyObject* value) {
  uint64_t frame;
  if (to_u64(value, &frame) < 0) return NULL;
  ep_forget(frame);
  Py_RETURN_NONE;
}

// -- logs -----------------------------------------------------------------------------------

static PyObject* drain_ops(PyObject* Py_UNUSED(m), PyObject* args, PyObject* kwargs) {
  static char* names[] = {"", "open_too", NULL};
  long long end;
  int open_too;
  uint64_t lost;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "L$p", names, &end, &open_too)) return NULL;
  PyObject* dict = to_dict(ep_drain_ops(end, open_too, &lost));
  return with_count(dict, "lost", lost);
}

static PyObject* drain_launches(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  uint64_t lost;
  PyObject* dict = to_dict(ep_drain_launches(&lost));
  return with_count(dict, "lost", lost);
}

static PyObject* launch(PyObject* Py_UNUSED(m), PyObject* args) {
  unsigned int name;
  long long start, end;
  unsigned long long correlation;
  if (!PyArg_ParseTuple(args, "ILLK", &name, &start, &end, &correlation)) return NULL;
  ep_log_host_call(name, start, end, correlation);
  Py_RETURN_NONE;
}

static PyObject* next_correlation(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromUnsignedLongLong(ep_next_correlation());
}

static PyObject* after_fork_child(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  ep_after_fork_child();
  Py_RETURN_NONE;
}

static PyObject* counters(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  uint64_t state[4];
  ep_pool_state(state);
  return Py_BuildValue("{sKsKsKsK}", "op_chunks", state[0], "op_chunks_bound", state[1],
                       "launch_chunks", state[2], "launch_chunks_bound", state[3]);
}

// -- CUPTI ----------------------------------------------------------------------------------

static PyObject* cupti_load(PyObject* Py_UNUSED(m), PyObject* args) {
  const char *path, *driver;
  uint32_t version;
  if (!PyArg_ParseTuple(args, "ss", &path, &driver)) return NULL;
  char* failed = ep_cupti_load(path, driver, &version);
  return failed ? raise_message(failed) : PyLong_FromUnsignedLong(version);
}

static PyObject* cupti_set_layout(PyObject* Py_UNUSED(m), PyObject* args) {
  const char* layout;
  Py_ssize_t bytes;
  if (!PyArg_ParseTuple(args, "y#", &layout, &bytes)) return NULL;
  char* failed = ep_cupti_set_layout(layout, (size_t)bytes);
  if (failed) return raise_message(failed);
  Py_RETURN_NONE;
}

static PyObject* cupti_configure(PyObject* Py_UNUSED(m), PyObject* args, PyObject* kwargs) {
  static char* names[] = {"buffer_bytes", "buffers", "max_records", NULL};
  Py_ssize_t bytes;
  unsigned int buffers;
  unsigned long long records;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$nIK", names, &bytes, &buffers, &records)) {
    return NULL;
  }
  ep_cupti_configure((size_t)bytes, buffers, records);
  Py_RETURN_NONE;
}

static PyObject* cupti_start(PyObject* Py_UNUSED(m), PyObject* args, PyObject* kwargs) {
  static char* names[] = {"kinds", "callbacks", "all_calls", "external", NULL};
  const char* kinds;
  Py_ssize_t bytes;
  int callbacks, all_calls, external;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$y#ppp", names, &kinds, &bytes, &callbacks,
                                   &all_calls, &external)) {
    return NULL;
  }
  struct ep_cupti_started started;
  char* failed;
  Py_BEGIN_ALLOW_THREADS
  failed = ep_cupti_start((const uint32_t*)kinds, (size_t)bytes / 4, callbacks, all_calls,
                          external, &started);
  Py_END_ALLOW_THREADS
  if (failed) return raise_message(failed);
  return Py_BuildValue("{sIsIsIsI}", "subscribed", started.subscribed, "subscribe_result",
                       started.subscribe_result, "clock_result", started.clock_result,
                       "failed_kinds", started.failed_kinds);
}

static PyObject* cupti_stop(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  Py_BEGIN_ALLOW_THREADS
  ep_cupti_stop();
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

static PyObject* cupti_sync(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  uint64_t failed[16][2];
  size_t count;
  Py_BEGIN_ALLOW_THREADS
  count = ep_cupti_sync(failed, 16);
  Py_END_ALLOW_THREADS
  PyObject* list = PyList_New(0);
  for (size_t i = 0; list && i < count; i++) {
    PyObject* pair = Py_BuildValue("KK", failed[i][0], failed[i][1]);
    if (!pair || PyList_Append(list, pair) < 0) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  return list;
}

static PyObject* cupti_outstanding(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromLongLong(ep_cupti_outstanding());
}

static PyObject* cupti_flush(PyObject* Py_UNUSED(m), PyObject* args, PyObject* kwargs) {
  static char* names[] = {"forced", NULL};
  int forced;
  uint32_t result;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$p", names, &forced)) return NULL;
  Py_BEGIN_ALLOW_THREADS
  result = ep_cupti_flush(forced);
  Py_END_ALLOW_THREADS
  return PyLong_FromUnsignedLong(result);
}

static PyObject* cuda_started(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyBool_FromLong(ep_cuda_started());
}

static PyObject* cupti_probe(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  int64_t times[4];
  int found;
  Py_BEGIN_ALLOW_THREADS
  found = ep_cupti_probe(times);
  Py_END_ALLOW_THREADS
  if (!found) Py_RETURN_NONE;
  return Py_BuildValue("LLLL", (long long)times[0], (long long)times[1], (long long)times[2],
                       (long long)times[3]);
}

static PyObject* cupti_drain(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  uint64_t counts[5];
  PyObject* dict = to_dict(ep_cupti_drain(counts));
  dict = with_count(dict, "lost", counts[0]);
  dict = with_count(dict, "unfinished", counts[1]);
  dict = with_count(dict, "dropped", counts[3]);
  return with_count(dict, "decode_ns", counts[4]);
}

static PyObject* cupti_graph_nodes(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return to_dict(ep_cupti_graph_nodes());
}

static PyObject* cupti_state(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  uint64_t s[6];
  ep_cupti_state(s);
  return Py_BuildValue("{sKsKsKsKsKsK}", "running", s[0], "buffers_out", s[1], "buffer_bytes",
                       s[2], "buffers_completed", s[3], "captures_open", s[4], "contexts", s[5]);
}

static PyObject* cupti_callback_name(PyObject* Py_UNUSED(m), PyObject* args) {
  unsigned int domain, cbid;
  if (!PyArg_ParseTuple(args, "II", &domain, &cbid)) return NULL;
  const char* name = ep_cupti_callback_name(domain, cbid);
  if (!name) Py_RETURN_NONE;
  return PyUnicode_FromString(name);
}

static PyObject* decode(PyObject* Py_UNUSED(m), PyObject* args) {
  const char *raw, *layout;
  Py_ssize_t raw_bytes, layout_bytes;
  uint64_t counts[5];
  if (!PyArg_ParseTuple(args, "y#y#", &raw, &raw_bytes, &layout, &layout_bytes)) return NULL;
  ep_columns* columns = ep_decode(raw, (size_t)raw_bytes, layout, (size_t)layout_bytes, counts);
  if (!columns) {
    PyErr_SetString(PyExc_ValueError, "not a layout of this version of the native core");
    return NULL;
  }
  PyObject* dict = to_dict(columns);
  dict = with_count(dict, "unfinished", counts[1]);
  dict = with_count(dict, "decoded", counts[2]);
  dict = with_count(dict, "bytes_walked", counts[3]);
  return with_count(dict, "decode_ns", counts[4]);
}

// -- ONNX Runtime ---------------------------------------------------------------------------

static PyObject* ort_runtime(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyUnicode_FromString(ep_ort_runtime());
}

static PyObject* ort_new_session(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromUnsignedLong(ep_ort_new_session());
}

static PyObject* ort_profile_run(PyObject* Py_UNUSED(m), PyObject* args) {
  PyObject* capsule;
  const char* prefix;
  if (!PyArg_ParseTuple(args, "Oz", &capsule, &prefix)) return NULL;
  void* options = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
  if (!options) return NULL;
  char* failed = ep_ort_profile_run(options, prefix);
  if (failed) return raise_message(failed);
  Py_RETURN_NONE;
}

static PyObject* ort_keep_event(PyObject* Py_UNUSED(m), PyObject* arguments) {
  enum { kMost = 32 };
  unsigned int session;
  unsigned long long run_op;
  int thread;
  long long start, duration;
  const char* name;
  PyObject* args;
  if (!PyArg_ParseTuple(arguments, "IKsLLiO!", &session, &run_op, &name, &start, &duration, &thread,
                        &PyTuple_Type, &args)) {
    return NULL;
  }
  const char* texts[kMost];
  Py_ssize_t count = PyTuple_Size(args);
  if (count > kMost || count % 2) {
    PyErr_SetString(PyExc_ValueError, "args are keys and values in turn, 16 pairs at most");
    return NULL;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    texts[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(args, i), NULL);
    if (!texts[i]) return NULL;
  }
  ep_ort_keep_event(session, run_op, name, start, duration, thread, texts, (size_t)count);
  Py_RETURN_NONE;
}

// Called without the GIL, on the thread of an ONNX Runtime run.
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
  on_file_opened = opened;  // for good: a run may be about to call an earlier one
  on_file_ending = ending;
  ep_ort_on_run_file(file_opened, file_ending);
  Py_RETURN_NONE;
}

static PyObject* ort_expect_run_file(PyObject* Py_UNUSED(m), PyObject* value) {
  int expected = PyObject_IsTrue(value);
  if (expected < 0) return NULL;
  ep_ort_expect_run_file(expected);
  Py_RETURN_NONE;
}

static PyObject* ort_nodes_of_last_run(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromLong(ep_ort_nodes_of_last_run());
}

static PyObject* ort_begin_run(PyObject* Py_UNUSED(m), PyObject* value) {
  uint32_t session;
  if (to_key(value, &session) < 0) return NULL;
  return PyLong_FromUnsignedLongLong(ep_ort_begin_run(session));
}

static PyObject* ort_end_run(PyObject* Py_UNUSED(m), PyObject* value) {
  unsigned long long op_id = PyLong_AsUnsignedLongLong(value);
  if (PyErr_Occurred()) return NULL;
  ep_ort_end_run(op_id);
  Py_RETURN_NONE;
}

static PyObject* ort_run_options_type(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  const char* name;
  const void* type = ep_ort_run_options_type(&name);
  return PyCapsule_New((void*)type, name, NULL);
}

static PyObject* ort_details(PyObject* Py_UNUSED(m), PyObject* value) {
  uint32_t first;
  if (to_key(value, &first) < 0) return NULL;
  return to_dict(ep_ort_details(first));
}

#define KEYWORDS(function) (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

static PyMethodDef functions[] = {
    {"now_ns", now_ns, METH_NOARGS, NULL},
    {"thread_id", thread_id, METH_NOARGS, NULL},
    {"set_recording", KEYWORDS(set_recording), NULL},
    {"set_limits", KEYWORDS(set_limits), NULL},
    {"set_cell_thread", set_cell_thread, METH_O, NULL},
    {"set_decorator", op_set_decorator, METH_O, NULL},
    {"set_suspender", op_set_suspender, METH_O, NULL},
    {"intern", intern_name, METH_O, NULL},
    {"names", names, METH_VARARGS, NULL},
    {"demangle", demangle, METH_O, NULL},
    {"push", push, METH_VARARGS, NULL},
    {"pop", pop, METH_O, NULL},
    {"top", top, METH_NOARGS, NULL},
    {"depth", depth, METH_NOARGS, NULL},
    {"add_statements", add_statements, METH_VARARGS, NULL},
    {"line", line, METH_O, NULL},
    {"back", back, METH_O, NULL},
    {"enter", enter, METH_O, NULL},
    {"leave", leave, METH_O, NULL},
    {"enter_frame", enter_frame, METH_O, NULL},
    {"leave_frame", leave_frame, METH_O, NULL},
    {"suspend", suspend, METH_O, NULL},
    {"resume", resume, METH_O, NULL},
    {"forget", forget, METH_O, NULL},
    {"drain_ops", KEYWORDS(drain_ops), NULL},
    {"drain_launches", drain_launches, METH_NOARGS, NULL},
    {"launch", launch, METH_VARARGS, NULL},
    {"next_correlation", next_correlation, METH_NOARGS, NULL},
    {"args_of", op_args_of, METH_O, NULL},
    {"clear_args", op_clear_args, METH_NOARGS, NULL},
    {"after_fork_child", after_fork_child, METH_NOARGS, NULL},
    {"counters", counters, METH_NOARGS, NULL},
    {"cupti_load", cupti_load, METH_VARARGS, NULL},
    {"cupti_set_layout", cupti_set_layout, METH_VARARGS, NULL},
    {"cupti_configure", KEYWORDS(cupti_configure), NULL},
    {"cupti_start", KEYWORDS(cupti_start), NULL},
    {"cupti_stop", cupti_stop, METH_NOARGS, NULL},
    {"cupti_sync", cupti_sync, METH_NOARGS, NULL},
    {"cupti_outstanding", cupti_outstanding, METH_NOARGS, NULL},
    {"cupti_flush", KEYWORDS(cupti_flush), NULL},
    {"cuda_started", cuda_started, METH_NOARGS, NULL},
    {"cupti_probe", cupti_probe, METH_NOARGS, NULL},
    {"cupti_drain", cupti_drain, METH_NOARGS, NULL},
    {"cupti_graph_nodes", cupti_graph_nodes, METH_NOARGS, NULL},
    {"cupti_state", cupti_state, METH_NOARGS, NULL},
    {"cupti_callback_name", cupti_callback_name, METH_VARARGS, NULL},
    {"decode", decode, METH_VARARGS, NULL},
    {"ort_runtime", ort_runtime, METH_NOARGS, NULL},
    {"ort_new_session", ort_new_session, METH_NOARGS, NULL},
    {"ort_profile_run", ort_profile_run, METH_VARARGS, NULL},
    {"ort_keep_event", ort_keep_event, METH_VARARGS, NULL},
    {"ort_on_run_file", ort_on_run_file, METH_VARARGS, NULL},
    {"ort_expect_run_file", ort_expect_run_file, METH_O, NULL},
    {"ort_nodes_of_last_run", ort_nodes_of_last_run, METH_NOARGS, NULL},
    {"ort_begin_run", ort_begin_run, METH_O, NULL},
    {"ort_end_run", ort_end_run, METH_O, NULL},
    {"ort_run_options_type", ort_run_options_type, METH_NOARGS, NULL},
    {"ort_details", ort_details, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static int execute(PyObject* module) {
  PyObject* type = op_type_create(module);
  if (!type) return -1;
  int failed = PyModule_AddObjectRef(module, "Op", type);
  Py_DECREF(type);
  // 1 GiB of op records and 1 GiB of launch records at most; address space only until used.
  ep_set_limits(32768, 32768, 100000, 1000);
  return failed;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "The native core of epprof_nb.", 0, functions, slots,
    NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
