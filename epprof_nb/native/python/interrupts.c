// Ctrl-C and the code that must not be cut in two: where a session begins and ends.
//
// Python runs signal handlers between the steps of Python code, so a KeyboardInterrupt can be raised
// between two statements, and at the first step of an `__exit__` written in Python. In C it cannot.
#include "python/interrupts.h"

#include <signal.h>
#include <unistd.h>

#define END_ATTEMPTS 8

// The handler of SIGINT while a call is held: it notes the signal, which is handled afterwards. The
// handler of Python is exchanged, not that of the system, because `_thread.interrupt_main` and
// signals that arrive on other threads reach only the former.
static struct {
  PyObject* set;  // signal.signal
  PyObject* get;  // signal.getsignal
  PyObject* note;
  PyObject* handler;  // of the user
  unsigned long thread;
  int depth;
  int arrived;
} held;

static PyObject* note_signal(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(args)) {
  held.arrived = 1;
  Py_RETURN_NONE;
}

static int set_handler(PyObject* handler) {
  PyObject* done = PyObject_CallFunction(held.set, "iO", SIGINT, handler);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

// Begins to hold SIGINT back. Returns 1 if `release` must follow; 0 if there is nothing to hold
// back, as on threads other than the main one; -1 if a signal that came before was raised.
static int hold(void) {
  if (epprof_thread_id() != (uint64_t)getpid()) return 0;
  if (held.depth) {
    held.depth++;
    return 1;
  }
  if (PyErr_CheckSignals() < 0) return -1;
  PyObject* handler = PyObject_CallFunction(held.get, "i", SIGINT);
  if (!handler) return -1;
  if (!PyCallable_Check(handler)) {  // ignored, or handled outside of Python
    Py_DECREF(handler);
    return 0;
  }
  if (set_handler(held.note) < 0) {
    Py_DECREF(handler);
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) return -1;
    PyErr_Clear();  // the main thread of the process is not that of the interpreter
    return 0;
  }
  held.handler = handler;
  held.thread = PyThread_get_thread_ident();
  held.arrived = 0;
  held.depth = 1;
  return 1;
}

static void restore_handler(void) {
  PyObject* current = PyObject_CallFunction(held.get, "i", SIGINT);
  if (!current || (current == held.note && set_handler(held.handler) < 0)) {
    PyErr_WriteUnraisable(held.note);
  }
  Py_XDECREF(current);
  held.depth = 0;
}

// Ends what `hold` began and handles a signal that arrived meanwhile. Returns -1 if that raises.
static int release(void) {
  if (held.depth > 1) {
    held.depth--;
    return 0;
  }
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  restore_handler();
  PyObject* handler = held.handler;
  held.handler = NULL;
  PyObject* handled = NULL;
  if (held.arrived) {
    PyFrameObject* frame = PyEval_GetFrame();
    handled = PyObject_CallFunction(handler, "iO", SIGINT, frame ? (PyObject*)frame : Py_None);
  }
  int failed = held.arrived && !handled;
  Py_XDECREF(handled);
  Py_DECREF(handler);
  if (failed) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return -1;
  }
  PyErr_Restore(type, value, traceback);
  return 0;
}

// A thread may fork while the main thread holds a call, which the child does not have.
static PyObject* after_fork_in_child(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(unused)) {
  if (held.depth && held.thread != PyThread_get_thread_ident()) {
    restore_handler();
    Py_CLEAR(held.handler);
  }
  Py_RETURN_NONE;
}

// -- calls --------------------------------------------------------------------------------------

static PyObject* call_held(PyObject* function, PyObject* args) {
  int holds = hold();
  if (holds < 0) return NULL;
  PyObject* result = PyObject_CallObject(function, args);
  if (holds && release() < 0) Py_CLEAR(result);
  return result;
}

typedef struct {
  PyObject *type, *value, *traceback;
} Error;

static void keep_first(Error* first) {
  Error error;
  PyErr_Fetch(&error.type, &error.value, &error.traceback);
  Error* dropped = first->type ? &error : first;
  Py_XDECREF(dropped->type);
  Py_XDECREF(dropped->value);
  Py_XDECREF(dropped->traceback);
  if (dropped == first) *first = error;
}

// Calls `end` after a call that returned `result`, or raised. Handlers of other signals can raise
// inside `end`, so it is called again until it returns.
static PyObject* then_end(PyObject* result, PyObject* end) {
  Error error = {NULL, NULL, NULL};
  PyErr_Fetch(&error.type, &error.value, &error.traceback);
  int ended = 0;
  for (int attempt = 0; !ended && attempt < END_ATTEMPTS; attempt++) {
    int holds = hold();
    if (holds >= 0) {
      PyObject* done = PyObject_CallObject(end, NULL);
      ended = done != NULL;
      Py_XDECREF(done);
      if (holds) release();
    }
    if (PyErr_Occurred()) keep_first(&error);
  }
  if (!error.type) return result;
  Py_XDECREF(result);
  PyErr_Restore(error.type, error.value, error.traceback);
  return NULL;
}

static PyObject* uninterrupted(PyObject* Py_UNUSED(m), PyObject* args) {
  PyObject* function = PyTuple_GetItem(args, 0);
  PyObject* rest = function ? PyTuple_GetSlice(args, 1, PyTuple_Size(args)) : NULL;
  if (!rest) return NULL;
  PyObject* result = call_held(function, rest);
  Py_DECREF(rest);
  return result;
}

static PyObject* call_then(PyObject* Py_UNUSED(m), PyObject* args) {
  PyObject* end = PyTuple_Size(args) ? PyTuple_GetItem(args, 0) : NULL;
  PyObject* function = PyTuple_GetItem(args, 1);
  PyObject* rest = function ? PyTuple_GetSlice(args, 2, PyTuple_Size(args)) : NULL;
  if (!rest) return NULL;
  PyObject* result = then_end(PyObject_CallObject(function, rest), end);
  Py_DECREF(rest);
  return result;
}

// -- the types ----------------------------------------------------------------------------------

static PyObject* context_enter(PyObject* self, PyObject* Py_UNUSED(unused)) {
  PyObject* enter = PyObject_GetAttrString(self, "_enter");
  PyObject* end = enter ? PyObject_GetAttrString(self, "_end") : NULL;
  PyObject* result = NULL;
  int holds = end ? hold() : -1;
  if (holds >= 0) {
    result = PyObject_CallObject(enter, NULL);
    if (holds && release() < 0 && result) {
      Py_CLEAR(result);
      then_end(NULL, end);
    }
  }
  Py_XDECREF(enter);
  Py_XDECREF(end);
  return result;
}

static PyObject* context_exit(PyObject* self, PyObject* args) {
  PyObject* exit = PyObject_GetAttrString(self, "_exit");
  PyObject* end = exit ? PyObject_GetAttrString(self, "_end") : NULL;
  PyObject* result = end ? then_end(PyObject_CallObject(exit, args), end) : NULL;
  Py_XDECREF(exit);
  Py_XDECREF(end);
  return result;
}

static PyMethodDef context_methods[] = {
    {"__enter__", context_enter, METH_NOARGS, NULL},
    {"__exit__", context_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot context_slots[] = {{Py_tp_methods, context_methods}, {0, NULL}};

static PyType_Spec context_spec = {
    .name = "epprof_nb._native.GuardedContext",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = context_slots,
};

// A member of this type calls a function when its owner is gone. Unlike weakref.finalize, which is
// Python code, it is neither skipped nor cut short by Ctrl-C.
typedef struct {
  PyObject_HEAD
  PyObject* function;
  PyObject* args;
} Finalizer;

static PyObject* finalizer_new(PyTypeObject* type, PyObject* args, PyObject* Py_UNUSED(kwargs)) {
  PyObject* function = PyTuple_GetItem(args, 0);
  PyObject* rest = function ? PyTuple_GetSlice(args, 1, PyTuple_Size(args)) : NULL;
  if (!rest) return NULL;
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  Finalizer* self = (Finalizer*)allocate(type, 0);
  if (!self) {
    Py_DECREF(rest);
    return NULL;
  }
  Py_INCREF(function);
  self->function = function;
  self->args = rest;
  return (PyObject*)self;
}

static int finalizing(void) {
  PyObject* function = PySys_GetObject("is_finalizing");
  PyObject* answer = function ? PyObject_CallObject(function, NULL) : NULL;
  int yes = !answer || PyObject_IsTrue(answer);
  Py_XDECREF(answer);
  PyErr_Clear();
  return yes;
}

static void finalize(Finalizer* self) {
  int holds = hold(), interrupted = holds < 0;
  for (int attempt = 1; holds < 0 && attempt < END_ATTEMPTS; attempt++) {
    PyErr_Clear();  // a signal that came just before
    holds = hold();
  }
  PyErr_Clear();
  PyObject* done = PyObject_CallObject(self->function, self->args);
  if (!done) PyErr_WriteUnraisable(self->function);
  Py_XDECREF(done);
  if (holds > 0 && release() < 0) interrupted = 1;
  PyErr_Clear();
  if (interrupted) PyErr_SetInterruptEx(SIGINT);  // an exception would be lost here
}

static void finalizer_dealloc(PyObject* object) {
  Finalizer* self = (Finalizer*)object;
  PyTypeObject* type = Py_TYPE(object);
  PyObject *error, *value, *traceback;
  PyErr_Fetch(&error, &value, &traceback);
  if (!finalizing()) finalize(self);
  PyErr_Restore(error, value, traceback);
  Py_CLEAR(self->function);
  Py_CLEAR(self->args);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

static PyType_Slot finalizer_slots[] = {
    {Py_tp_new, finalizer_new}, {Py_tp_dealloc, finalizer_dealloc}, {0, NULL}};

static PyType_Spec finalizer_spec = {
    .name = "epprof_nb._native.Finalizer",
    .basicsize = sizeof(Finalizer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = finalizer_slots,
};

static int add_type(PyObject* module, const char* name, PyType_Spec* spec) {
  PyObject* type = PyType_FromModuleAndSpec(module, spec, NULL);
  int failed = !type || PyModule_AddObjectRef(module, name, type) < 0;
  Py_XDECREF(type);
  return failed ? -1 : 0;
}

static PyMethodDef functions[] = {
    {"uninterrupted", uninterrupted, METH_VARARGS, NULL},
    {"call_then", call_then, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef note_method = {"note_signal", note_signal, METH_VARARGS, NULL};
static PyMethodDef fork_method = {"after_fork_in_child", after_fork_in_child, METH_NOARGS, NULL};

static int register_fork_handler(void) {
  PyObject* os = PyImport_ImportModule("os");
  PyObject* function = os ? PyObject_GetAttrString(os, "register_at_fork") : NULL;
  PyObject* handler = function ? PyCFunction_New(&fork_method, NULL) : NULL;
  PyObject* none = handler ? PyTuple_New(0) : NULL;
  PyObject* named = none ? Py_BuildValue("{sO}", "after_in_child", handler) : NULL;
  PyObject* done = named ? PyObject_Call(function, none, named) : NULL;
  Py_XDECREF(os);
  Py_XDECREF(function);
  Py_XDECREF(handler);
  Py_XDECREF(none);
  Py_XDECREF(named);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

int interrupts_add(PyObject* module) {
  PyObject* signals = PyImport_ImportModule("_signal");
  if (!signals) return -1;
  held.set = PyObject_GetAttrString(signals, "signal");
  held.get = PyObject_GetAttrString(signals, "getsignal");
  held.note = PyCFunction_New(&note_method, NULL);
  Py_DECREF(signals);
  int failed = !held.set || !held.get || !held.note || register_fork_handler() < 0 ||
               add_type(module, "GuardedContext", &context_spec) < 0 ||
               add_type(module, "Finalizer", &finalizer_spec) < 0 ||
               PyModule_AddFunctions(module, functions) < 0;
  return failed ? -1 : 0;
}
