// The type that replaces torch.nn.Module.__call__. It is in C, because it runs at each call of a
// module.
#include "python/recorded_module.h"

#include <string.h>

#include "core/api.h"
#include "python/greenlet_switches.h"
#include "torch/api.h"

#ifndef Py_TPFLAGS_METHOD_DESCRIPTOR
#define Py_TPFLAGS_METHOD_DESCRIPTOR (1UL << 17)  // called with the module as the first argument
#endif

// Vectorcall is part of the limited API since Python 3.12, and the same in 3.11.
#ifndef Py_TPFLAGS_HAVE_VECTORCALL
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
PyAPI_FUNC(PyObject*) PyObject_Vectorcall(PyObject*, PyObject* const*, size_t, PyObject*);
PyAPI_FUNC(PyObject*) PyVectorcall_Call(PyObject*, PyObject*, PyObject*);
#endif
#define ARGUMENTS_OFFSET ((size_t)1 << (8 * sizeof(size_t) - 1))  // PY_VECTORCALL_ARGUMENTS_OFFSET

typedef struct {
  PyObject_HEAD
  PyObject* (*vectorcall)(PyObject*, PyObject* const*, size_t, PyObject*);
  PyObject* original;
  PyObject* known;         // address of a module -> its number
  PyObject* find;          // module -> the same, or None if its calls are not ops
  PyObject* compiler;      // the namespace of torch.compiler
  PyObject* is_compiling;
  PyObject* next_number;   // None: the engine's own function
  PyObject* task;          // the same
  PyObject* begin_model;   // module, args, kwargs -> a function of the result, or None
  PyObject* plain;         // types of arguments that hold no KV cache
  PyTypeObject* last_plain;  // one of them
  PyObject* takes_cache;   // class of a module -> whether it takes a KV cache
  PyObject* attributes;    // __dict__
  PyObject* weak_references;
  int on;
} Recorded;

static PyTypeObject* method_type;
static PyObject* flag_name;
static _Thread_local int in_model;  // in the call of a model with a KV cache, on this thread
static _Thread_local int depth;     // recorded calls that this thread is in
static PyObject* on_outermost;      // args, kwargs of each outermost call; NULL for none

// Modules that were called last, by their addresses: a lookup in dictionaries takes as long as the
// rest of the record. Entries of an earlier generation are void.
typedef struct {
  Recorded* recorded;
  PyObject* module;
  PyTypeObject* type;  // `module.__class__ = ...` is allowed
  uint64_t generation;
  int64_t number;
  int takes_cache;  // whether the class may take a KV cache
} Called;
enum { CALLED = 1024 };
static Called called[CALLED];
static uint64_t generation = 1;

static Called* called_at(const PyObject* module) {
  uintptr_t address = (uintptr_t)module;
  return &called[(address >> 4 ^ address >> 14) % CALLED];
}

static Called* find_called(Recorded* self, PyObject* module) {
  Called* found = called_at(module);
  int matches = found->module == module && found->recorded == self &&
                found->type == Py_TYPE(module) && found->generation == generation;
  return matches ? found : NULL;
}

// The number of a module; -1 if its calls are not ops, -2 on failure.
static int64_t look_up(Recorded* self, PyObject* module) {
  PyObject* key = PyLong_FromVoidPtr(module);
  if (!key) return -2;
  PyObject* value = PyDict_GetItemWithError(self->known, key);
  Py_DECREF(key);
  if (value) return PyLong_AsLongLong(value);
  if (PyErr_Occurred()) return -2;
  value = PyObject_CallFunctionObjArgs(self->find, module, NULL);
  if (!value) return -2;
  int64_t number = value == Py_None ? -1 : PyLong_AsLongLong(value);
  Py_DECREF(value);
  return number == -1 && PyErr_Occurred() ? -2 : number;
}

static int64_t number_of(Recorded* self, PyObject* module) {
  Called* found = find_called(self, module);
  if (found) return found->number;
  int64_t number = look_up(self, module);
  if (number < 0) return number;
  *called_at(module) = (Called){self, module, Py_TYPE(module), generation, number, 1};
  return number;
}

static int64_t call_for_number(PyObject* function) {  // -2 on failure
  PyObject* value = PyObject_CallNoArgs(function);
  int64_t number = value ? PyLong_AsLongLong(value) : -2;
  Py_XDECREF(value);
  return PyErr_Occurred() ? -2 : number;
}

static int64_t next_number(Recorded* self) {
  if (self->next_number == Py_None) return (int64_t)epprof_next_number();
  return call_for_number(self->next_number);
}

static int is_in_pass(Recorded* self) {  // -1 on failure
  if (!epprof_runs_pass()) return 0;
  if (self->task == Py_None) return epprof_is_in_pass();
  int64_t task = call_for_number(self->task);
  return task == -2 ? -1 : task >= 0;
}

static int is_compiling(Recorded* self) {  // -1 on failure
  // `is_compiling` returns this flag unless it is compiled itself, which does not happen here.
  PyObject* flag = PyDict_GetItemWithError(self->compiler, flag_name);
  if (flag) return PyObject_IsTrue(flag);
  if (PyErr_Occurred()) return -1;
  PyObject* value = PyObject_CallNoArgs(self->is_compiling);
  int result = value ? PyObject_IsTrue(value) : -1;
  Py_XDECREF(value);
  return result;
}

static void end_call(Recorded* self, epprof_module_call call) {
  if (self->next_number == Py_None) {  // no Python code runs
    epprof_module_end(call, epprof_next_number());
    return;
  }
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  int64_t number = next_number(self);
  if (number == -2) {
    PyErr_WriteUnraisable((PyObject*)self);
    number = 0;
  }
  epprof_module_end(call, (uint64_t)number);
  PyErr_Restore(type, value, traceback);
}

// 0 if a class without a hash raised the error, which is cleared; -1 for others, such as Ctrl-C.
static int cleared(void) {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
  PyErr_Clear();
  return 0;
}

// The arguments of a call, as in the vectorcall protocol: the values of the keywords follow the
// positional ones.
typedef struct {
  PyObject* const* values;
  Py_ssize_t positional;
  PyObject* keywords;  // a tuple of names, or NULL
} Arguments;

static Py_ssize_t count_of(const Arguments* given) {
  return given->positional + (given->keywords ? PyTuple_Size(given->keywords) : 0);
}

// function(tuple of positional arguments, dictionary of the others or None), after `first`, which
// may be NULL.
static PyObject* call_with(PyObject* function, PyObject* first, const Arguments* given) {
  PyObject* args = PyTuple_New(given->positional);
  if (!args) return NULL;
  for (Py_ssize_t i = 0; i < given->positional; i++) {
    Py_INCREF(given->values[i]);
    PyTuple_SetItem(args, i, given->values[i]);
  }
  Py_ssize_t count = count_of(given);
  PyObject* kwargs = count > given->positional ? PyDict_New() : Py_NewRef(Py_None);
  int failed = !kwargs;
  for (Py_ssize_t i = given->positional; i < count && !failed; i++) {
    PyObject* name = PyTuple_GetItem(given->keywords, i - given->positional);
    failed = PyDict_SetItem(kwargs, name, given->values[i]) < 0;
  }
  PyObject* result = NULL;
  if (!failed && first) result = PyObject_CallFunctionObjArgs(function, first, args, kwargs, NULL);
  if (!failed && !first) result = PyObject_CallFunctionObjArgs(function, args, kwargs, NULL);
  Py_XDECREF(kwargs);
  Py_DECREF(args);
  return result;
}

// Whether an argument may hold a KV cache; -1 on failure. An unknown class takes one.
static int may_be_model(Recorded* self, const Arguments* given) {
  PyObject* module = given->values[0];
  Called* found = find_called(self, module);
  if (!found || found->takes_cache) {
    PyObject* takes = PyDict_GetItemWithError(self->takes_cache, (PyObject*)Py_TYPE(module));
    if (!takes && PyErr_Occurred()) return cleared();
    if (takes != Py_False) return 1;
    found = find_called(self, module);  // the hash of a class may have called other modules
    if (found) found->takes_cache = 0;
  }
  int is_plain = 1;
  Py_ssize_t count = count_of(given);
  for (Py_ssize_t i = 1; i < count && is_plain == 1; i++) {
    PyTypeObject* type = Py_TYPE(given->values[i]);
    if (type == self->last_plain) continue;
    is_plain = PySet_Contains(self->plain, (PyObject*)type);
    if (is_plain == 1) self->last_plain = type;
  }
  if (is_plain < 0) is_plain = cleared();
  return is_plain < 0 ? -1 : !is_plain;
}

// The function to call with the result of a model with a KV cache; None for other modules.
static PyObject* begin_model(Recorded* self, const Arguments* given) {
  int may_be = may_be_model(self, given);
  if (may_be < 0) return NULL;
  return may_be ? call_with(self->begin_model, given->values[0], given) : Py_NewRef(Py_None);
}

// Returns the result, or NULL if the call failed or Ctrl-C arrived.
static PyObject* end_model(PyObject* self, PyObject* end, PyObject* result) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* done = PyObject_CallFunctionObjArgs(end, result ? result : Py_None, NULL);
  if (!done && result && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
    Py_DECREF(result);
    return NULL;
  }
  if (!done) PyErr_WriteUnraisable(self);
  Py_XDECREF(done);
  PyErr_Restore(type, value, traceback);
  return result;
}

static void tell_outermost(const Arguments* given) {
  PyObject* function = on_outermost;
  if (!function) return;
  Py_INCREF(function);  // it may be replaced during the call
  PyObject* done = call_with(function, NULL, given);
  if (!done) PyErr_WriteUnraisable(function);
  Py_XDECREF(done);
  Py_DECREF(function);
}

static PyObject* recorded_call(PyObject* object, PyObject* const* values, size_t count,
                               PyObject* keywords) {
  Recorded* self = (Recorded*)object;
  Arguments given = {values, (Py_ssize_t)(count & ~ARGUMENTS_OFFSET), keywords};
  if (!self->on || !given.positional) {
    return PyObject_Vectorcall(self->original, values, count, keywords);
  }
  int64_t cost_begin = epprof_cost_begin(EPPROF_COST_MODULES);
  int compiles = is_compiling(self);
  if (compiles < 0) return NULL;
  int64_t number = compiles ? -1 : number_of(self, values[0]);
  if (number == -2) return NULL;
  if (number == -1) return PyObject_Vectorcall(self->original, values, count, keywords);
  int64_t begin = next_number(self);
  int in_pass = begin == -2 ? -1 : is_in_pass(self);
  if (in_pass < 0) return NULL;
  PyObject* end = NULL;
  if (!in_model && !in_pass) {
    end = begin_model(self, &given);
    if (!end) return NULL;
    in_model = end != Py_None;
  }
  if (!depth && !in_pass) tell_outermost(&given);
  see_greenlet();
  epprof_module_call call = epprof_module_begin((uint32_t)number, (uint64_t)begin, in_pass);
  epprof_cost_end(EPPROF_COST_MODULES, cost_begin);
  depth++;
  PyObject* result = PyObject_Vectorcall(self->original, values, count, keywords);
  depth--;
  cost_begin = epprof_cost_resume(cost_begin);
  end_call(self, call);
  if (end) {
    in_model = 0;
    if (end != Py_None) result = end_model(object, end, result);
    Py_DECREF(end);
  }
  epprof_cost_end(EPPROF_COST_MODULES, cost_begin);
  return result;
}

static PyObject* bind(PyObject* self, PyObject* module, PyObject* Py_UNUSED(type)) {
  if (!module || module == Py_None) {
    Py_INCREF(self);
    return self;
  }
  return PyObject_CallFunctionObjArgs((PyObject*)method_type, self, module, NULL);
}

static PyObject* stop(PyObject* self, PyObject* Py_UNUSED(unused)) {
  ((Recorded*)self)->on = 0;
  Py_RETURN_NONE;
}

static int recorded_init(PyObject* object, PyObject* args, PyObject* kwargs) {
  Recorded* self = (Recorded*)object;
  PyObject *original, *known, *find, *compiler, *compiling, *numbers, *task, *model, *plain, *takes;
  static char* names[] = {"original",    "known", "find",        "compiler", "is_compiling",
                          "next_number", "task",  "begin_model", "plain",    "takes_cache",
                          NULL};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!OO!OOOOO!O!", names, &original, &PyDict_Type,
                                   &known, &find, &PyDict_Type, &compiler, &compiling, &numbers,
                                   &task, &model, &PySet_Type, &plain, &PyDict_Type, &takes)) {
    return -1;
  }
  if ((numbers == Py_None || task == Py_None) && !epprof_engine_is_known()) {
    PyErr_SetString(PyExc_ValueError, "the engine's functions are not known");
    return -1;
  }
  PyObject* values[] = {original, known, find,  compiler, compiling,
                        numbers,  task,  model, plain,    takes};
  PyObject** places[] = {&self->original,     &self->known,       &self->find, &self->compiler,
                         &self->is_compiling, &self->next_number, &self->task, &self->begin_model,
                         &self->plain,        &self->takes_cache};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    PyObject* old = *places[i];
    Py_INCREF(values[i]);
    *places[i] = values[i];
    Py_XDECREF(old);
  }
  self->last_plain = NULL;
  self->vectorcall = recorded_call;
  self->on = 1;
  generation++;  // another one may have been at this address
  return 0;
}

static int traverse(PyObject* object, visitproc visit, void* arg) {
  Recorded* self = (Recorded*)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->original);
  Py_VISIT(self->known);
  Py_VISIT(self->find);
  Py_VISIT(self->compiler);
  Py_VISIT(self->is_compiling);
  Py_VISIT(self->next_number);
  Py_VISIT(self->task);
  Py_VISIT(self->begin_model);
  Py_VISIT(self->plain);
  Py_VISIT(self->takes_cache);
  Py_VISIT(self->attributes);
  return 0;
}

static int clear(PyObject* object) {
  Recorded* self = (Recorded*)object;
  Py_CLEAR(self->original);
  Py_CLEAR(self->known);
  Py_CLEAR(self->find);
  Py_CLEAR(self->compiler);
  Py_CLEAR(self->is_compiling);
  Py_CLEAR(self->next_number);
  Py_CLEAR(self->task);
  Py_CLEAR(self->begin_model);
  Py_CLEAR(self->plain);
  Py_CLEAR(self->takes_cache);
  Py_CLEAR(self->attributes);
  return 0;
}

static void dealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  if (((Recorded*)object)->weak_references) PyObject_ClearWeakRefs(object);
  clear(object);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

// Copies, and pickles, which other processes read without this package, have the original.
static PyObject* reduce(PyObject* self, PyObject* Py_UNUSED(unused)) {
  PyObject* module = PyImport_ImportModule("copy");
  PyObject* copy = module ? PyObject_GetAttrString(module, "copy") : NULL;
  Py_XDECREF(module);
  return copy ? Py_BuildValue("(N(O))", copy, ((Recorded*)self)->original) : NULL;
}

static PyMethodDef methods[] = {
    {"stop", stop, METH_NOARGS, "Only call the original from now on."},
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(Recorded, attributes), READONLY, NULL},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Recorded, vectorcall), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Recorded, weak_references), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_init, recorded_init}, {Py_tp_call, PyVectorcall_Call}, {Py_tp_descr_get, bind},
    {Py_tp_traverse, traverse},  {Py_tp_clear, clear},        {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},    {Py_tp_members, members},    {Py_tp_getset, getters},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "epprof_nb._native.RecordedModule",
    .basicsize = sizeof(Recorded),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_METHOD_DESCRIPTOR |
             Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = slots,
};

static PyObject* modules_on_outermost(PyObject* Py_UNUSED(m), PyObject* function) {
  PyObject* old = on_outermost;
  on_outermost = function == Py_None ? NULL : function;
  Py_XINCREF(on_outermost);
  Py_XDECREF(old);
  Py_RETURN_NONE;
}

static PyObject* modules_renumbered(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(unused)) {
  generation++;
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"modules_on_outermost", modules_on_outermost, METH_O, NULL},
    {"modules_renumbered", modules_renumbered, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int recorded_module_type_create(PyObject* module) {
  PyObject* types = PyImport_ImportModule("types");
  method_type = types ? (PyTypeObject*)PyObject_GetAttrString(types, "MethodType") : NULL;
  Py_XDECREF(types);
  flag_name = PyUnicode_InternFromString("_is_compiling_flag");
  PyObject* type = method_type && flag_name ? PyType_FromModuleAndSpec(module, &spec, NULL) : NULL;
  int failed = !type || PyModule_AddObjectRef(module, "RecordedModule", type) < 0 ||
               PyModule_AddFunctions(module, functions) < 0;
  Py_XDECREF(type);
  return failed ? -1 : 0;
}
