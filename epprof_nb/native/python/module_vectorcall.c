// Functions of _native that record the calls of all objects of a type as ops. JAX's jitted
// functions are objects of a C++ type. Python calls them by vectorcall, not by the type's
// `__call__`. While recording, the type has no vectorcall and has our `__call__`. Both are restored
// afterwards.
#include "python/greenlet_switches.h"

enum { kCategory = 6 };         // kFrameworkCall of core/records.h
enum { kFlagsOffset = 168 };    // of tp_flags in PyTypeObject, hidden by the limited API
enum { kHaveVectorcall = 1 << 11 };

typedef struct {
  PyTypeObject* type;  // null: not recording
  ternaryfunc call;    // the type's own; kept for calls that end after the recording
  PyObject* original;  // its `__call__`
  PyObject* ours;
  PyObject* describe;
  PyObject* known;  // address -> (weak reference, name, kind)
  int had_vectorcall;
  int on;
} Recording;
// One per process, like the type. Guarded by the GIL.
static Recording recording;
// Calls inside a recorded call are part of it.
static _Thread_local int open_calls;
// Open pauses of this thread in `paused_recording`. Code that pauses may continue past the end of
// the recording and leave its pause open.
static _Thread_local int open_pauses;
static _Thread_local uint64_t paused_recording;
static uint64_t recordings;  // the number of the last one; guarded by the GIL

static PyObject* raise_error(const char* message) {
  PyErr_SetString(PyExc_RuntimeError, message);
  return NULL;
}

// Null if the flags are elsewhere in this build of Python.
static unsigned long* flags_of(PyTypeObject* type) {
  PyTypeObject* proofs[] = {type, &PyLong_Type, &PyType_Type, &PyTuple_Type};
  for (size_t i = 0; i < sizeof proofs / sizeof *proofs; i++) {
    unsigned long* flags = (unsigned long*)((char*)proofs[i] + kFlagsOffset);
    if (*flags != PyType_GetFlags(proofs[i])) return NULL;
  }
  return (unsigned long*)((char*)type + kFlagsOffset);
}

// Requests the op of an object and adds it to `known`. Another thread may end the recording
// meanwhile.
static PyObject* described(PyObject* self, PyObject* known, PyObject* key) {  // new reference
  PyObject* describe = recording.describe;
  Py_INCREF(describe);
  PyObject* op = PyObject_CallFunctionObjArgs(describe, self, NULL);
  Py_DECREF(describe);
  PyObject* reference = op ? PyWeakref_NewRef(self, NULL) : NULL;
  PyObject* entry = NULL;
  if (reference) {
    entry = PyTuple_Pack(3, reference, PyTuple_GetItem(op, 0), PyTuple_GetItem(op, 1));
  }
  if (entry && PyDict_SetItem(known, key, entry) < 0) Py_CLEAR(entry);
  Py_XDECREF(op);
  Py_XDECREF(reference);
  return entry;
}

static int find_op(PyObject* self, uint32_t* name, uint32_t* kind) {
  PyObject* key = PyLong_FromVoidPtr(self);
  if (!key) return -1;
  PyObject* known = recording.known;
  Py_INCREF(known);
  PyObject* entry = PyDict_GetItemWithError(known, key);
  // An object at the address of a deleted object is unknown.
  if (entry && PyWeakref_GetObject(PyTuple_GetItem(entry, 0)) == self) {
    Py_INCREF(entry);
  } else {
    entry = PyErr_Occurred() ? NULL : described(self, known, key);
  }
  Py_DECREF(key);
  Py_DECREF(known);
  int failed = !entry || to_u32(PyTuple_GetItem(entry, 1), name) < 0 ||
               to_u32(PyTuple_GetItem(entry, 2), kind) < 0;
  Py_XDECREF(entry);
  return failed ? -1 : 0;
}

static int* pauses_of_thread(void) {
  if (paused_recording != recordings) {
    paused_recording = recordings;
    open_pauses = 0;
  }
  return &open_pauses;
}

static PyObject* recorded_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (!recording.on || open_calls || *pauses_of_thread() || !epprof_recording_ops()) {
    return recording.call(self, args, kwargs);
  }
  uint32_t name, kind;
  open_calls++;
  uint64_t op_id = 0;
  if (find_op(self, &name, &kind) == 0) {
    see_greenlet();
    op_id = epprof_push(name, kCategory, kind, NULL, 0);
  } else if (PyErr_ExceptionMatches(PyExc_Exception)) {
    PyErr_WriteUnraisable(self);
  } else {  // Ctrl-C
    open_calls--;
    return NULL;
  }
  PyObject* result = recording.call(self, args, kwargs);
  if (op_id) epprof_pop(op_id);
  open_calls--;
  *pauses_of_thread() = 0; // a pause inside the call that is still open will not end
  return result;
}

static PyMethodDef recorded_call_def = {"__call__", KEYWORDS(recorded_call),
                                        "Call self as a function."};

static void forget(void) {
  Py_CLEAR(recording.original);
  Py_CLEAR(recording.ours);
  Py_CLEAR(recording.describe);
  Py_CLEAR(recording.known);
  recording.type = NULL;
}

static PyObject* vectorcalls_record(PyObject* Py_UNUSED(m), PyObject* args) {
  PyTypeObject* type;
  PyObject* describe;
  if (!PyArg_ParseTuple(args, "O!O", &PyType_Type, &type, &describe)) return NULL;
  if (recording.type) return raise_error("calls are recorded already");
  unsigned long* flags = flags_of(type);
  if (!flags) return raise_error("this build of Python has another layout of types");
  if (!(*flags & Py_TPFLAGS_HEAPTYPE)) return raise_error("the type cannot be changed");
  PyObject* original = PyObject_GetAttrString((PyObject*)type, "__call__");
  if (!original) return NULL;
  if (!Py_IS_TYPE(original, &PyWrapperDescr_Type)) {  // it may call an earlier recording's
    Py_DECREF(original);
    return raise_error("other code has replaced the type's __call__");
  }
  recording.call = (ternaryfunc)PyType_GetSlot(type, Py_tp_call);
  recording.had_vectorcall = (*flags & kHaveVectorcall) != 0;
  recording.original = original;
  recording.ours = PyDescr_NewMethod(type, &recorded_call_def);
  recording.known = PyDict_New();
  Py_INCREF(describe);
  recording.describe = describe;
  if (!recording.ours || !recording.known ||
      PyObject_SetAttrString((PyObject*)type, "__call__", recording.ours) < 0) {
    forget();
    return NULL;
  }
  recording.type = type;
  Py_INCREF((PyObject*)type);
  recording.on = 1;
  recordings++;
  *flags &= ~(unsigned long)kHaveVectorcall;
  Py_RETURN_NONE;
}

static PyObject* vectorcalls_stop(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  PyTypeObject* type = recording.type;
  if (!type) Py_RETURN_NONE;
  recording.on = 0;
  PyObject* current = PyObject_GetAttrString((PyObject*)type, "__call__");
  int failed = !current;
  if (current == recording.ours) {  // otherwise other code has replaced it, and probably calls it
    failed = PyObject_SetAttrString((PyObject*)type, "__call__", recording.original) < 0;
    if (!failed && recording.had_vectorcall) *flags_of(type) |= kHaveVectorcall;
  }
  Py_XDECREF(current);
  forget();
  Py_DECREF((PyObject*)type);
  if (failed) return NULL;
  Py_RETURN_NONE;
}

static PyObject* vectorcalls_pause(PyObject* Py_UNUSED(m), PyObject* value) {
  int on = PyObject_IsTrue(value);
  if (on < 0) return NULL;
  int* pauses = pauses_of_thread();
  if (on) {
    ++*pauses;
  } else if (*pauses) {  // otherwise the pause began in an earlier recording
    --*pauses;
  }
  Py_RETURN_NONE;
}

PyMethodDef vectorcall_functions[] = {
    {"vectorcalls_record", vectorcalls_record, METH_VARARGS, NULL},
    {"vectorcalls_stop", vectorcalls_stop, METH_NOARGS, NULL},
    {"vectorcalls_pause", vectorcalls_pause, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
