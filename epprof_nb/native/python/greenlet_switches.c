// The module greenlet reports each switch to a trace function, one per thread. Our function keeps
// the previous one and calls it. A thread gets it when it opens an op.
#include "python/greenlet_switches.h"

PyObject* (*current_greenlet)(void);
static PyObject *set_trace, *get_trace;  // greenlet.settrace and gettrace; NULL: built without
static unsigned long long missed;        // unreported switches in this recording

static uint64_t id_of(PyObject* greenlet) { return (uint64_t)(uintptr_t)greenlet; }

static PyObject* on_switch(PyObject* previous, PyObject* const* args, Py_ssize_t count);
static PyMethodDef switch_method = {"on_greenlet_switch", (PyCFunction)(void (*)(void))on_switch,
                                    METH_FASTCALL, NULL};

static int is_ours(PyObject* trace) {
  return PyObject_TypeCheck(trace, &PyCFunction_Type) &&
         PyCFunction_GetFunction(trace) == switch_method.ml_meth;
}

static void set_trace_function(PyObject* trace) {
  PyObject* done = trace ? PyObject_CallFunctionObjArgs(set_trace, trace, NULL) : NULL;
  Py_XDECREF(done);
}

// Begins to follow the switches of the calling thread.
static void trace_thread(void) {
  PyObject* previous = set_trace ? PyObject_CallNoArgs(get_trace) : NULL;
  if (previous && !is_ours(previous)) {
    PyObject* own = PyCFunction_NewEx(&switch_method, previous, NULL);
    set_trace_function(own);
    Py_XDECREF(own);
  }
  Py_XDECREF(previous);
}

// Restores the trace function of the calling thread, unless another one has replaced ours.
static void untrace_thread(void) {
  PyObject* trace = set_trace ? PyObject_CallNoArgs(get_trace) : NULL;
  if (trace && is_ours(trace)) set_trace_function(PyCFunction_GetSelf(trace));
  Py_XDECREF(trace);
}

// A new reference to the outermost parent, which is the thread's own greenlet.
static PyObject* root_of(PyObject* greenlet) {
  Py_INCREF(greenlet);
  for (;;) {
    PyObject* parent = PyObject_GetAttrString(greenlet, "parent");
    if (!parent || parent == Py_None) {
      Py_XDECREF(parent);
      return greenlet;
    }
    Py_DECREF(greenlet);
    greenlet = parent;
  }
}

static void see(PyObject* current) {
  PyObject* root = root_of(current);
  missed += (unsigned)epprof_see_greenlet(id_of(current), id_of(root));
  Py_DECREF(root);
  trace_thread();
}

void see_current_greenlet(void) {
  PyObject* current = current_greenlet();
  if (current && epprof_greenlet() == id_of(current)) {
    Py_DECREF(current);
    return;
  }
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (current) see(current);
  Py_XDECREF(current);
  PyErr_Restore(type, value, traceback);
}

static int is_switch(PyObject* event) {
  return PyUnicode_Check(event) && (PyUnicode_CompareWithASCIIString(event, "switch") == 0 ||
                                    PyUnicode_CompareWithASCIIString(event, "throw") == 0);
}

static PyObject* on_switch(PyObject* previous, PyObject* const* args, Py_ssize_t count) {
  if (count == 2 && is_switch(args[0]) && PyTuple_Check(args[1]) && PyTuple_Size(args[1]) == 2) {
    PyObject* from = PyTuple_GetItem(args[1], 0);
    PyObject* to = PyTuple_GetItem(args[1], 1);
    if (current_greenlet) {
      int runs = PyObject_IsTrue(from);  // a greenlet is true until it has ended
      if (runs < 0) return NULL;
      epprof_switch_greenlet(id_of(from), id_of(to), !runs);
    } else {
      untrace_thread();
    }
  }
  if (previous == Py_None || count != 2) Py_RETURN_NONE;
  return PyObject_CallFunctionObjArgs(previous, args[0], args[1], NULL);
}

// -- start and stop ---------------------------------------------------------------------------

// Keeps the trace functions, because other threads restore theirs later.
static void take_trace_functions(PyObject* module) {
  if (get_trace) return;
  set_trace = PyObject_GetAttrString(module, "settrace");
  get_trace = set_trace ? PyObject_GetAttrString(module, "gettrace") : NULL;
  if (!get_trace) Py_CLEAR(set_trace);
  PyErr_Clear();
}

static PyObject* follow_greenlets(PyObject* Py_UNUSED(m), PyObject* module) {
  enum { kGetCurrent = 4 };  // PyGreenlet_GetCurrent_NUM of greenlet.h
  missed = 0;
  PyObject* capsule = PyObject_GetAttrString(module, "_C_API");
  void** api = capsule ? PyCapsule_GetPointer(capsule, "greenlet._C_API") : NULL;
  Py_XDECREF(capsule);
  if (!api) return NULL;
  take_trace_functions(module);
  current_greenlet = (PyObject * (*)(void)) api[kGetCurrent];
  see_current_greenlet();
  Py_RETURN_NONE;
}

static PyObject* leave_greenlets(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  if (current_greenlet) {
    current_greenlet = NULL;
    untrace_thread();
    PyErr_Clear();
  }
  Py_RETURN_NONE;
}

static PyObject* missed_switches(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromUnsignedLongLong(missed);
}

PyMethodDef greenlet_functions[] = {
    {"follow_greenlets", follow_greenlets, METH_O, NULL},
    {"leave_greenlets", leave_greenlets, METH_NOARGS, NULL},
    {"missed_greenlet_switches", missed_switches, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
