// Ctrl-C and code that it must not interrupt: the begin and end of a session.
//
// Python runs signal handlers between the steps of Python code, so a KeyboardInterrupt can occur
// between two statements, and at the first step of an `__exit__` written in Python. It cannot occur
// in C.
#include "python/interrupts.h"

#include <signal.h>
#include <unistd.h>

#define END_ATTEMPTS 8
#define RESTORE_ATTEMPTS 1000

// The handler of SIGINT during a held call. It notes the signal, which is handled afterwards. This
// replaces Python's handler, not the system's, because `_thread.interrupt_main` and signals on
// other threads reach only Python's handler.
static struct {
  PyObject* set;  // signal.signal
  PyObject* get;  // signal.getsignal
  PyObject* note;
  PyObject* handler;  // the user's
  unsigned long thread;
  int depth;
  int arrived;
} held;

static PyObject* note_signal(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(args)) {
  held.arrived = 1;
  Py_RETURN_NONE;
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

// Handlers of pending signals run before. The first one that raises prevents the exchange.
static int set_handler(PyObject* handler) {
  PyObject* done = PyObject_CallFunction(held.set, "iO", SIGINT, handler);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

// Begins to hold SIGINT back. Returns 1 if `release` must follow; 0 if there is nothing to hold
// back, for example on other threads than the main thread; -1 if an earlier signal raised.
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
    PyErr_Clear();  // the process and the interpreter have different main threads
    return 0;
  }
  held.handler = handler;
  held.thread = PyThread_get_thread_ident();
  held.arrived = 0;
  held.depth = 1;
  return 1;
}

// Restores the user's handler. Returns -1, with the first exception, if handlers of other signals
// raised.
static int restore_handler(void) {
  Error error = {NULL, NULL, NULL};
  PyObject* current = PyObject_CallFunction(held.get, "i", SIGINT);
  int restored = current && current != held.note;  // the user's code has set another handler
  for (int attempt = 0; !restored && attempt < RESTORE_ATTEMPTS; attempt++) {
    restored = set_handler(held.handler) == 0;
    if (!restored) keep_first(&error);
  }
  Py_XDECREF(current);
  held.depth = 0;
  PyErr_Restore(error.type, error.value, error.traceback);
  return error.type ? -1 : 0;
}

static int call_handler(PyObject* handler) {
  PyFrameObject* frame = PyEval_GetFrame();
  PyObject* at = frame ? (PyObject*)frame : Py_None;
  PyObject* handled = PyObject_CallFunction(handler, "iO", SIGINT, at);
  Py_XDECREF(handled);
  return handled ? 0 : -1;
}

// Ends what `hold` began and handles a signal that arrived meanwhile. Returns -1 if that raises.
static int release(void) {
  if (held.depth > 1) {
    held.depth--;
    return 0;
  }
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  int failed = restore_handler() < 0;
  PyObject* handler = held.handler;
  held.handler = NULL;
  if (held.arrived) {
    if (failed) {
      PyErr_SetInterruptEx(SIGINT);  // handled next, as Python does when a handler raises
    } else {
      failed = call_handler(handler) < 0;
    }
  }
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

// A thread may fork while the main thread holds a call. The child does not have that call.
static PyObject* after_fork_in_child(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(unused)) {
  int failed = 0;
  if (held.depth && held.thread != PyThread_get_thread_ident()) {
    failed = restore_handler() < 0;
    Py_CLEAR(held.handler);
  }
  if (failed) return NULL;
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

// Calls `end` after a call that returned `result` or raised, with the argument `of` unless it is
// null. Handlers of other signals can raise inside `end`, so it is repeated until it returns.
static PyObject* then_end(PyObject* result, PyObject* end, PyObject* of) {
  Error error = {NULL, NULL, NULL};
  PyErr_Fetch(&error.type, &error.value, &error.traceback);
  int ended = 0;
  for (int attempt = 0; !ended && attempt < END_ATTEMPTS; attempt++) {
    int holds = hold();
    if (holds >= 0) {
      PyObject* done = PyObject_CallFunctionObjArgs(end, of, NULL);
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
  PyObject* result = then_end(PyObject_CallObject(function, rest), end, NULL);
  Py_DECREF(rest);
  return result;
}

// -- the types ----------------------------------------------------------------------------------

// The results of `_make` for each entered `with`, the innermost last.
static PyObject* entered_of(PyObject* self) {
  PyObject* entered = PyObject_GetAttrString(self, "_entered");
  if (entered && !PyList_Check(entered)) {
    PyErr_SetString(PyExc_TypeError, "_entered is not a list");
    Py_CLEAR(entered);
  }
  return entered;
}

static PyObject* enter(PyObject* function, PyObject* made) {
  int holds = hold();
  if (holds < 0) return NULL;
  PyObject* result = PyObject_CallFunctionObjArgs(function, made, NULL);
  if (holds && release() < 0) Py_CLEAR(result);
  return result;
}

static PyObject* context_enter(PyObject* self, PyObject* Py_UNUSED(unused)) {
  PyObject* entered = entered_of(self);
  PyObject* function = entered ? PyObject_GetAttrString(self, "_enter") : NULL;
  PyObject* end = function ? PyObject_GetAttrString(self, "_end") : NULL;
  PyObject* make = end ? PyObject_GetAttrString(self, "_make") : NULL;
  PyObject* made = make ? PyObject_CallNoArgs(make) : NULL;
  PyObject* result = NULL;
  if (made) {
    result = enter(function, made);
    if (!result || PyList_Append(entered, made) < 0) {
      Py_CLEAR(result);
      then_end(NULL, end, made);
    }
  }
  Py_XDECREF(entered);
  Py_XDECREF(function);
  Py_XDECREF(end);
  Py_XDECREF(make);
  Py_XDECREF(made);
  return result;
}

static PyObject* exit_with(PyObject* function, PyObject* made, PyObject* args) {
  PyObject* one = PyTuple_Pack(1, made);
  PyObject* all = one ? PySequence_Concat(one, args) : NULL;
  PyObject* result = all ? PyObject_CallObject(function, all) : NULL;
  Py_XDECREF(one);
  Py_XDECREF(all);
  return result;
}

static PyObject* context_exit(PyObject* self, PyObject* args) {
  PyObject* entered = entered_of(self);
  Py_ssize_t last = entered ? PyList_Size(entered) - 1 : -1;
  PyObject* made = NULL;
  if (entered) {
    made = PyList_GetItem(entered, last);  // raises if nothing was entered
    Py_XINCREF(made);
  }
  PyObject* function = made ? PyObject_GetAttrString(self, "_exit") : NULL;
  PyObject* end = function ? PyObject_GetAttrString(self, "_end") : NULL;
  PyObject* result = NULL;
  if (end) {
    PyList_SetSlice(entered, last, last + 1, NULL);
    result = then_end(exit_with(function, made, args), end, made);
  }
  Py_XDECREF(entered);
  Py_XDECREF(made);
  Py_XDECREF(function);
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

// An attribute of this type calls a function when its owner is deleted. Unlike weakref.finalize,
// which is Python code, it is neither skipped nor interrupted by Ctrl-C.
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

// Clears the exception of a signal handler, which a destructor cannot raise. Returns 1 if it must
// be raised again as Ctrl-C. Other exceptions are reported as unraisable, as in any destructor.
static int is_interrupt(PyObject* of) {
  int interrupt = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
  if (interrupt) {
    PyErr_Clear();
  } else {
    PyErr_WriteUnraisable(of);
  }
  return interrupt;
}

static void finalize(Finalizer* self) {
  int holds = hold(), interrupted = 0;
  for (int attempt = 1; holds < 0 && attempt < END_ATTEMPTS; attempt++) {
    interrupted |= is_interrupt(self->function);  // from a signal just before
    holds = hold();
  }
  if (holds < 0) interrupted |= is_interrupt(self->function);
  PyObject* done = NULL;
  for (int attempt = 0; !done && attempt < END_ATTEMPTS; attempt++) {
    done = PyObject_CallObject(self->function, self->args);
    if (!done) PyErr_WriteUnraisable(self->function);
  }
  Py_XDECREF(done);
  if (holds > 0 && release() < 0) interrupted |= is_interrupt(self->function);
  if (interrupted) PyErr_SetInterruptEx(SIGINT);
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
