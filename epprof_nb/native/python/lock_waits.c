// Functions of _native that record waits for locks and `queue.SimpleQueue`, and in `time.sleep`.
// These are types and a function in C, of which no attribute can be replaced. So while recording,
// the table of their methods has ours, for all objects of the type. A lock that is free costs one
// call more.
#include "python/convert.h"

#include <string.h>

typedef PyObject* (*KeywordsFunction)(PyObject*, PyObject*, PyObject*);
typedef PyObject* (*FastFunction)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
typedef PyObject* (*MethodFunction)(PyObject*, PyTypeObject*, PyObject* const*, Py_ssize_t,
                                    PyObject*);
typedef void (*AnyFunction)(void);

enum { kKeywords = METH_VARARGS | METH_KEYWORDS, kFast = METH_FASTCALL | METH_KEYWORDS };
enum { kMethod = METH_METHOD | kFast };

// The layout of a method of a type, from 3.8 on; hidden by the limited API.
typedef struct {
  PyObject base;
  PyTypeObject* type;
  PyObject *name, *qualified_name;
  PyMethodDef* method;
} MethodDescriptor;

// The layout of a function in C, from 3.8 on; hidden by the limited API.
typedef struct {
  PyObject base;
  PyMethodDef* method;
} FunctionObject;

typedef struct {
  PyMethodDef* method;
  AnyFunction original, ours;
} Replaced;

// One per process, like the types. Guarded by the GIL.
static Replaced replaced[24];
static size_t replaced_count;
static int is_prepared;
static PyObject* not_blocking;  // the arguments `(False,)`

// Of a kind of lock: the functions of its type. Of a queue: `get`, `put` and `empty`.
typedef struct {
  PyTypeObject* type;
  AnyFunction acquire, release, save, empty;
  int flags;  // of `acquire`
} Functions;
static Functions functions_of[3];

static PyObject* call_acquire(const Functions* own, PyObject* self, int blocks) {
  if (own->flags == kKeywords) {
    PyObject* args = blocks ? PyTuple_New(0) : Py_NewRef(not_blocking);
    PyObject* result = args ? ((KeywordsFunction)own->acquire)(self, args, NULL) : NULL;
    Py_XDECREF(args);
    return result;
  }
  PyObject* args[] = {Py_False};
  return ((FastFunction)own->acquire)(self, args, blocks ? 0 : 1, NULL);
}

// Locks of sub-interpreters are of other types. They are not recorded.
static int is_recorded(const Functions* own, PyObject* self) {
  return PyObject_TypeCheck(self, own->type);
}

static PyObject* ended(epprof_waiter* waiter, int kind, PyObject* result) {
  // A call whose arguments are refused does not wait, however long that takes.
  int is_over = result ? kind == EPPROF_QUEUE || result == Py_True
                       : PyErr_ExceptionMatches(PyExc_TypeError) ||
                             PyErr_ExceptionMatches(PyExc_ValueError) ||
                             PyErr_ExceptionMatches(PyExc_OverflowError);
  epprof_end_lock_wait(waiter, kind, is_over);
  return result;
}

static PyObject* acquire(int kind, PyObject* self) {
  const Functions* own = &functions_of[kind];
  if (!is_recorded(own, self)) return call_acquire(own, self, 1);
  PyObject* result = call_acquire(own, self, 0);
  if (result != Py_False) return result;  // it was free
  Py_DECREF(result);
  epprof_waiter waiter;
  epprof_begin_lock_wait(&waiter, self);
  return ended(&waiter, kind, call_acquire(own, self, 1));
}

// Whether the first argument, which has this name, is False: the call does not wait.
static int returns_at_once(PyObject* const* args, Py_ssize_t count, PyObject* names,
                           const char* name) {
  if (count) return args[0] == Py_False;
  Py_ssize_t keywords = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < keywords; i++) {
    if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, i), name) == 0) {
      return args[i] == Py_False;
    }
  }
  return 0;
}

static PyObject* acquire_keywords(int kind, PyObject* self, PyObject* args, PyObject* kwargs) {
  KeywordsFunction original = (KeywordsFunction)functions_of[kind].acquire;
  Py_ssize_t count = PyTuple_Size(args);
  if (!count && !kwargs) return acquire(kind, self);
  PyObject* blocking = count ? PyTuple_GetItem(args, 0) : PyDict_GetItemString(kwargs, "blocking");
  if (blocking == Py_False || !is_recorded(&functions_of[kind], self)) {
    return original(self, args, kwargs);
  }
  epprof_waiter waiter;
  epprof_begin_lock_wait(&waiter, self);
  return ended(&waiter, kind, original(self, args, kwargs));
}

static PyObject* acquire_fast(int kind, PyObject* self, PyObject* const* args, Py_ssize_t count,
                              PyObject* names) {
  FastFunction original = (FastFunction)functions_of[kind].acquire;
  if (!count && !names) return acquire(kind, self);
  if (returns_at_once(args, count, names, "blocking") ||
      !is_recorded(&functions_of[kind], self)) {
    return original(self, args, count, names);
  }
  epprof_waiter waiter;
  epprof_begin_lock_wait(&waiter, self);
  return ended(&waiter, kind, original(self, args, count, names));
}

static PyObject* release(AnyFunction original, PyObject* self) {
  if (epprof_has_lock_waiters()) epprof_hand_over(self);
  return ((PyCFunction)original)(self, NULL);
}

#define LOCK_FUNCTIONS(name, kind)                                                              \
  static PyObject* name##_acquire(PyObject* self, PyObject* args, PyObject* kwargs) {           \
    return acquire_keywords(kind, self, args, kwargs);                                          \
  }                                                                                             \
  static PyObject* name##_acquire_fast(PyObject* self, PyObject* const* args, Py_ssize_t count, \
                                       PyObject* names) {                                       \
    return acquire_fast(kind, self, args, count, names);                                        \
  }                                                                                             \
  static PyObject* name##_enter(PyObject* self, PyObject* Py_UNUSED(unused)) {                  \
    return acquire(kind, self);                                                                 \
  }                                                                                             \
  static PyObject* name##_release(PyObject* self, PyObject* Py_UNUSED(args)) {                  \
    return release(functions_of[kind].release, self);                                           \
  }                                                                                             \
  static PyObject* name##_save(PyObject* self, PyObject* Py_UNUSED(unused)) {                   \
    return release(functions_of[kind].save, self);                                              \
  }
LOCK_FUNCTIONS(lock, EPPROF_LOCK)
LOCK_FUNCTIONS(rlock, EPPROF_RLOCK)

static PyObject* queue_get(PyObject* self, PyTypeObject* type, PyObject* const* args,
                           Py_ssize_t count, PyObject* names) {
  const Functions* own = &functions_of[EPPROF_QUEUE];
  MethodFunction original = (MethodFunction)own->acquire;
  if (returns_at_once(args, count, names, "block") || !is_recorded(own, self)) {
    return original(self, type, args, count, names);
  }
  PyObject* is_empty = ((PyCFunction)own->empty)(self, NULL);
  if (!is_empty) return NULL;
  Py_DECREF(is_empty);
  if (is_empty != Py_True) return original(self, type, args, count, names);
  epprof_waiter waiter;
  epprof_begin_lock_wait(&waiter, self);
  return ended(&waiter, EPPROF_QUEUE, original(self, type, args, count, names));
}

static PyObject* queue_put(PyObject* self, PyObject* const* args, Py_ssize_t count,
                           PyObject* names) {
  if (epprof_has_lock_waiters()) epprof_hand_over(self);
  return ((FastFunction)functions_of[EPPROF_QUEUE].release)(self, args, count, names);
}

static PyCFunction original_sleep;

static PyObject* sleep_for(PyObject* module, PyObject* seconds) {
  int64_t start = epprof_now_ns();
  PyObject* result = original_sleep(module, seconds);
  epprof_log_clock_wait(start, EPPROF_SLEEP);
  return result;
}

// Null if the type has no such method in C, or of another kind.
static PyMethodDef* method_of(PyTypeObject* type, const char* name, int flags) {
  PyObject* found = PyObject_GetAttrString((PyObject*)type, name);
  PyErr_Clear();
  PyMethodDef* method = NULL;
  if (found && Py_TYPE(found) == &PyMethodDescr_Type) {
    MethodDescriptor* descriptor = (MethodDescriptor*)found;
    // The type and the name prove the layout.
    if (descriptor->type == type && PyUnicode_Check(descriptor->name) &&
        PyUnicode_CompareWithASCIIString(descriptor->name, name) == 0) {
      method = descriptor->method;
      if (strcmp(method->ml_name, name) != 0 || method->ml_flags != flags) method = NULL;
    }
  }
  Py_XDECREF(found);
  return method;
}

static AnyFunction original_of(PyTypeObject* type, const char* name, int flags) {
  PyMethodDef* method = method_of(type, name, flags);
  return method ? (AnyFunction)method->ml_meth : NULL;
}

static void prepare(PyTypeObject* type, const char* name, int flags, AnyFunction ours) {
  PyMethodDef* method = method_of(type, name, flags);
  if (!method) return;
  replaced[replaced_count++] = (Replaced){method, (AnyFunction)method->ml_meth, ours};
}

static void prepare_lock(int kind, PyTypeObject* type, AnyFunction of_keywords, AnyFunction of_fast,
                         PyCFunction enter, PyCFunction of_release, PyCFunction of_save) {
  Functions* own = &functions_of[kind];
  own->type = type;
  own->release = original_of(type, "release", METH_NOARGS);
  own->save = original_of(type, "_release_save", METH_NOARGS);
  own->flags = kKeywords;
  own->acquire = original_of(type, "acquire", kKeywords);
  if (!own->acquire) {
    own->flags = kFast;
    own->acquire = original_of(type, "acquire", kFast);
  }
  if (!own->acquire || !own->release) return;
  const char* names[] = {"acquire", "acquire_lock", "__enter__"};
  AnyFunction of_acquire = own->flags == kFast ? of_fast : of_keywords;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    prepare(type, names[i], own->flags, of_acquire);
  }
  prepare(type, "__enter__", METH_NOARGS, (AnyFunction)enter);
  prepare(type, "release", METH_NOARGS, (AnyFunction)of_release);
  prepare(type, "release_lock", METH_NOARGS, (AnyFunction)of_release);
  prepare(type, "__exit__", METH_VARARGS, (AnyFunction)of_release);
  if (own->save) prepare(type, "_release_save", METH_NOARGS, (AnyFunction)of_save);
}

static void prepare_queue(PyTypeObject* type) {
  Functions* own = &functions_of[EPPROF_QUEUE];
  own->type = type;
  own->acquire = original_of(type, "get", kMethod);
  own->release = original_of(type, "put", kFast);
  own->empty = original_of(type, "empty", METH_NOARGS);
  if (!own->acquire || !own->release || !own->empty) return;
  prepare(type, "get", kMethod, (AnyFunction)queue_get);
  prepare(type, "put", kFast, (AnyFunction)queue_put);
  if (original_of(type, "put_nowait", kFast)) {
    prepare(type, "put_nowait", kFast, (AnyFunction)queue_put);
  }
}

// Others may have put a function of their own in its place, as gevent does.
static void prepare_sleep(PyObject* sleep) {
  if (Py_TYPE(sleep) != &PyCFunction_Type) return;
  PyMethodDef* method = ((FunctionObject*)sleep)->method;
  original_sleep = PyCFunction_GetFunction(sleep);
  // The function and the name prove the layout.
  if (method->ml_meth != original_sleep || strcmp(method->ml_name, "sleep") != 0 ||
      method->ml_flags != METH_O) {
    return;
  }
  Py_INCREF(sleep);
  replaced[replaced_count++] =
      (Replaced){method, (AnyFunction)original_sleep, (AnyFunction)sleep_for};
}

// Arguments: the types of `threading.Lock`, `threading.RLock` and `queue.SimpleQueue`, and
// `time.sleep`. Those that are written in Python have no such methods.
static PyObject* start_lock_waits(PyObject* Py_UNUSED(m), PyObject* args) {
  PyTypeObject *lock, *rlock, *queue;
  PyObject* sleep;
  if (!PyArg_ParseTuple(args, "O!O!O!O", &PyType_Type, &lock, &PyType_Type, &rlock, &PyType_Type,
                        &queue, &sleep)) {
    return NULL;
  }
  if (!is_prepared) {
    not_blocking = PyTuple_Pack(1, Py_False);
    if (!not_blocking) return NULL;
    // The types live as long as the process: our functions may run on after the recording.
    Py_INCREF((PyObject*)lock);
    Py_INCREF((PyObject*)rlock);
    Py_INCREF((PyObject*)queue);
    prepare_lock(EPPROF_LOCK, lock, (AnyFunction)lock_acquire, (AnyFunction)lock_acquire_fast,
                 lock_enter, lock_release, lock_save);
    prepare_lock(EPPROF_RLOCK, rlock, (AnyFunction)rlock_acquire, (AnyFunction)rlock_acquire_fast,
                 rlock_enter, rlock_release, rlock_save);
    prepare_queue(queue);
    prepare_sleep(sleep);
    is_prepared = 1;
  }
  epprof_record_lock_waits(1);
  for (size_t i = 0; i < replaced_count; i++) {
    PyMethodDef* method = replaced[i].method;
    if ((AnyFunction)method->ml_meth == replaced[i].original) {
      method->ml_meth = (PyCFunction)replaced[i].ours;
    }
  }
  Py_RETURN_NONE;
}

static PyObject* stop_lock_waits(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(unused)) {
  for (size_t i = 0; i < replaced_count; i++) {
    PyMethodDef* method = replaced[i].method;
    if ((AnyFunction)method->ml_meth == replaced[i].ours) {
      method->ml_meth = (PyCFunction)replaced[i].original;
    }
  }
  epprof_record_lock_waits(0);
  Py_RETURN_NONE;
}

static PyObject* drain_lock_waits(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(unused)) {
  return columns_to_dict(epprof_drain_lock_waits());
}

static PyObject* pause_lock_waits(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(unused)) {
  epprof_leave_out_lock_waits(1);
  Py_RETURN_NONE;
}

static PyObject* resume_lock_waits(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(unused)) {
  epprof_leave_out_lock_waits(0);
  Py_RETURN_NONE;
}

PyMethodDef lock_functions[] = {
    {"pause_lock_waits", pause_lock_waits, METH_NOARGS, NULL},
    {"resume_lock_waits", resume_lock_waits, METH_NOARGS, NULL},
    {"start_lock_waits", start_lock_waits, METH_VARARGS, NULL},
    {"stop_lock_waits", stop_lock_waits, METH_NOARGS, NULL},
    {"drain_lock_waits", drain_lock_waits, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
