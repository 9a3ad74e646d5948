// The type that replaces torch.nn.Module.__call__. It is in C, because it runs at each call of a
// module.
#include "python/recorded_module.h"

#include "core/api.h"
#include "python/cached_calls.h"
#include "python/greenlet_switches.h"
#include "python/numbers_of_modules.h"
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

static PyTypeObject* method_type;
static PyObject* flag_name;
static _Thread_local int in_model;  // in the call of a model with a KV cache, on this thread
static _Thread_local int depth;     // recorded calls that this thread is in

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
  forget_numbers();  // another one may have been at this address
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

static PyObject* modules_renumbered(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(unused)) {
  forget_numbers();
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
