// The markers in the code of instrumented cells: statements, and function bodies as context managers.
#include "python/convert.h"
#include "python/greenlet_switches.h"

#include <stdlib.h>

// -- statements -------------------------------------------------------------------------------

// The markers run in every statement of an instrumented cell. They return at once if none is
// recorded.
typedef void (*StatementMarker)(uint32_t key);

static PyObject* mark_statement(PyObject* value, StatementMarker mark) {
  uint32_t key;
  if (!epprof_recording_statements()) Py_RETURN_NONE;
  if (to_u32(value, &key) < 0) return NULL;
  int64_t begin = epprof_cost_begin(EPPROF_COST_STATEMENTS);
  see_greenlet();
  if (epprof_suspended_frames() && epprof_is_in_generator(key) && resume_unseen_frame() < 0) {
    return NULL;
  }
  mark(key);
  if (begin) {
    int is_inner = epprof_is_in_function(key);
    epprof_cost_end(is_inner ? EPPROF_COST_INNER_STATEMENTS : EPPROF_COST_STATEMENTS, begin);
  }
  Py_RETURN_NONE;
}

static PyObject* line(PyObject* Py_UNUSED(m), PyObject* value) {
  return mark_statement(value, epprof_begin_statement);
}

static PyObject* back(PyObject* Py_UNUSED(m), PyObject* value) {
  return mark_statement(value, epprof_return_to_statement);
}

// -- function bodies --------------------------------------------------------------------------

// How the scope of a function is suspended with the calling frame: never, as the interpreter reports,
// or by markers around each `yield`.
typedef enum { kNever, kReported, kMarked } Suspension;

// Opens the scope of statement `key`.
static int enter_scope(uint32_t key, Suspension suspension) {
  uint64_t frame = 0;
  int64_t begin = epprof_cost_begin(EPPROF_COST_FUNCTIONS);
  if (suspension == kReported && suspendable_frame(&frame) < 0) return -1;
  if (suspension == kMarked && generator_frame(&frame) < 0) return -1;
  see_greenlet();
  if (frame) epprof_frame_finished(frame);  // an earlier one at this address, if its end was unseen
  epprof_enter_scope(key, frame);
  epprof_cost_end(EPPROF_COST_FUNCTIONS, begin);
  return 0;
}

// Runs no Python code, so nothing can keep the scope open.
static int leave_scope(uint32_t key, Suspension suspension) {
  uint64_t frame = 0;
  int64_t begin = epprof_cost_begin(EPPROF_COST_FUNCTIONS);
  if (suspension != kNever && generator_frame(&frame) < 0) return -1;
  see_greenlet();
  // An exception came out of a `yield`, or its resumption was not seen.
  if (frame && epprof_is_suspended(frame)) epprof_resume(frame);
  epprof_leave_scope(key, frame);
  epprof_cost_end(EPPROF_COST_FUNCTIONS, begin);
  return 0;
}

// Stateless: one object serves all calls of the function, on any thread.
typedef struct {
  PyObject_HEAD
  uint32_t key;
  Suspension suspension;
} Body;

static PyObject* body_enter(PyObject* object, PyObject* Py_UNUSED(unused)) {
  Body* body = (Body*)object;
  if (epprof_recording_statements() && enter_scope(body->key, body->suspension) < 0) return NULL;
  Py_RETURN_NONE;
}

static PyObject* body_exit(PyObject* object, PyObject* const* Py_UNUSED(args),
                           Py_ssize_t Py_UNUSED(count)) {
  Body* body = (Body*)object;
  if (epprof_recording_statements() && leave_scope(body->key, body->suspension) < 0) return NULL;
  Py_RETURN_FALSE;
}

static PyMethodDef enter_method = {"__enter__", body_enter, METH_NOARGS, NULL};
static PyMethodDef exit_method = {"__exit__", (PyCFunction)(void (*)(void))body_exit, METH_FASTCALL,
                                  NULL};

static PyType_Slot body_slots[] = {{0, NULL}};

static PyType_Spec body_spec = {
    .name = "epprof_nb._native.Body",
    .basicsize = sizeof(Body),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = body_slots,
};

static int set_function(PyObject* type, PyMethodDef* method, PyObject* body) {
  PyObject* function = PyCFunction_NewEx(method, body, NULL);
  int failed = !function || PyObject_SetAttrString(type, method->ml_name, function) < 0;
  Py_XDECREF(function);
  return failed ? -1 : 0;
}

// Each body has its own type, whose attributes are functions bound to the body. So a `with` creates
// no bound methods, which would make it three times as slow as the calls.
static PyObject* make_body(uint32_t key, Suspension suspension) {
  PyObject* type = PyType_FromSpec(&body_spec);
  if (!type) return NULL;
  allocfunc allocate = (allocfunc)PyType_GetSlot((PyTypeObject*)type, Py_tp_alloc);
  Body* body = (Body*)allocate((PyTypeObject*)type, 0);
  if (body) {
    body->key = key;
    body->suspension = suspension;
    if (set_function(type, &enter_method, (PyObject*)body) < 0 ||
        set_function(type, &exit_method, (PyObject*)body) < 0) {
      Py_CLEAR(body);
    }
  }
  Py_DECREF(type);
  return (PyObject*)body;
}

// By statement key. Kept until the process ends, like the statements. Protected by the GIL.
typedef struct {
  PyObject** objects;
  uint32_t size;
} Cache;
static Cache caches[3];

static int grow(Cache* cache, uint32_t key) {
  uint32_t size = cache->size ? cache->size : 1024;
  while (size <= key) size *= 2;
  PyObject** objects = realloc(cache->objects, size * sizeof *objects);
  if (!objects) {
    PyErr_NoMemory();
    return -1;
  }
  for (uint32_t i = cache->size; i < size; i++) objects[i] = NULL;
  *cache = (Cache){objects, size};
  return 0;
}

static PyObject* body_of(PyObject* value, Suspension suspension) {
  uint32_t key;
  if (to_u32(value, &key) < 0) return NULL;
  Cache* cache = &caches[suspension];
  if (key >= cache->size || !cache->objects[key]) {
    if (!epprof_has_statement(key)) {
      PyErr_Format(PyExc_ValueError, "no statement has the key %u; register it first", key);
      return NULL;
    }
    if (key >= cache->size && grow(cache, key) < 0) return NULL;
    PyObject* made = make_body(key, suspension);
    if (!made) return NULL;
    cache->objects[key] = made;
  }
  Py_INCREF(cache->objects[key]);
  return cache->objects[key];
}

static PyObject* body(PyObject* Py_UNUSED(m), PyObject* value) { return body_of(value, kNever); }
static PyObject* frame_body(PyObject* Py_UNUSED(m), PyObject* value) {
  return body_of(value, kReported);
}
static PyObject* yield_body(PyObject* Py_UNUSED(m), PyObject* value) {
  return body_of(value, kMarked);
}

// -- yields -------------------------------------------------------------------------------------

// Returns `value`, which is yielded or was sent.
static PyObject* change_frame(PyObject* value, void (*change)(uint64_t frame)) {
  if (epprof_recording_ops()) {
    int64_t begin = epprof_cost_begin(EPPROF_COST_INNER_STATEMENTS);
    uint64_t frame = 0;
    if (generator_frame(&frame) < 0) return NULL;
    if (frame) change(frame);
    epprof_cost_end(EPPROF_COST_INNER_STATEMENTS, begin);
  }
  Py_INCREF(value);
  return value;
}

static PyObject* suspend(PyObject* Py_UNUSED(m), PyObject* value) {
  return change_frame(value, epprof_suspend);
}

static PyObject* resume(PyObject* Py_UNUSED(m), PyObject* value) {
  return change_frame(value, epprof_resume);
}

PyMethodDef marker_functions[] = {
    {"line", line, METH_O, NULL},
    {"back", back, METH_O, NULL},
    {"body", body, METH_O, NULL},
    {"frame_body", frame_body, METH_O, NULL},
    {"yield_body", yield_body, METH_O, NULL},
    {"suspend", suspend, METH_O, NULL},
    {"resume", resume, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

// -- the same functions as methods --------------------------------------------------------------

static PyType_Slot markers_slots[] = {{Py_tp_methods, marker_functions}, {0, NULL}};

static PyType_Spec markers_spec = {
    .name = "epprof_nb._native.Markers",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = markers_slots,
};

int add_markers_type(PyObject* module) {
  PyObject* type = PyType_FromSpec(&markers_spec);
  int failed = !type || PyModule_AddObjectRef(module, "Markers", type) < 0;
  Py_XDECREF(type);
  return failed ? -1 : 0;
}
