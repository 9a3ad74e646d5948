#include "python/op_object.h"

#include "core/api.h"

typedef struct {
  PyObject_HEAD
  PyObject* name;
  PyObject* args;  // dict, or NULL
  uint32_t name_id;
  uint32_t args_id;
  uint64_t args_epoch;
} Op;

// Protected by the GIL.
static PyObject* name_ids;   // name -> id, a cache of the string table
static PyObject* args_list;  // args of ops recorded since the last clear; id = index + 1
static uint64_t args_epoch = 1;
static PyObject* decorator;
static PyObject* suspender;

// -- generator and coroutine frames ---------------------------------------------------------

#define CODE_CACHE 1024
static struct {
  PyObject* code;  // a strong reference, so that no other code object gets its address
  long flags;
} code_cache[CODE_CACHE];

static long code_flags(PyObject* code) {
  size_t slot = ((uintptr_t)code >> 4) % CODE_CACHE;
  if (code_cache[slot].code == code) return code_cache[slot].flags;
  PyObject* value = PyObject_GetAttrString(code, "co_flags");
  if (!value) return -1;
  long flags = PyLong_AsLong(value);
  Py_DECREF(value);
  if (flags == -1 && PyErr_Occurred()) return -1;
  Py_XDECREF(code_cache[slot].code);
  Py_INCREF(code);
  code_cache[slot].code = code;
  code_cache[slot].flags = flags;
  return flags;
}

int suspendable_frame(uint64_t* id) {
  *id = 0;
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) return 0;
  PyObject* code = (PyObject*)PyFrame_GetCode(frame);
  long flags = code_flags(code);
  Py_DECREF(code);
  if (flags == -1) return -1;
  // CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR (documented in `inspect`).
  if (!(flags & (0x20 | 0x80 | 0x200))) return 0;
  if (suspender) {
    PyObject* done = PyObject_CallFunctionObjArgs(suspender, (PyObject*)frame, NULL);
    if (!done) return -1;
    Py_DECREF(done);
  }
  *id = (uint64_t)(uintptr_t)frame;
  return 0;
}

// The slots of the type, looked up once. Ops take no part in garbage collection, which would double
// the cost of creating one; a reference cycle through the arguments is unlikely.
static allocfunc allocate;
static freefunc release;

// -- the type -------------------------------------------------------------------------------

static PyObject* op_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  if (PyTuple_Size(args) != 1) {
    PyErr_Format(PyExc_TypeError,
                 "op() takes one name and keyword arguments (%zd positional arguments given)",
                 PyTuple_Size(args));
    return NULL;
  }
  PyObject* name = PyTuple_GetItem(args, 0);
  if (!name) return NULL;
  if (!PyUnicode_Check(name)) {
    PyErr_Format(PyExc_TypeError, "the name of op() must be a str, not %R", name);
    return NULL;
  }
  Op* self = (Op*)allocate(type, 0);
  if (!self) return NULL;
  Py_INCREF(name);
  self->name = name;
  if (kwargs && PyDict_Size(kwargs) > 0) {
    Py_INCREF(kwargs);
    self->args = kwargs;
  }
  return (PyObject*)self;
}

static void op_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_CLEAR(((Op*)self)->name);
  Py_CLEAR(((Op*)self)->args);
  release(self);
  Py_DECREF(type);
}

// The id of the op's name, or 0 with an exception set.
static uint32_t name_id(Op* self) {
  if (self->name_id) return self->name_id;
  PyObject* known = PyDict_GetItemWithError(name_ids, self->name);
  if (known) {
    self->name_id = (uint32_t)PyLong_AsUnsignedLong(known);
    return self->name_id;
  }
  if (PyErr_Occurred()) return 0;
  Py_ssize_t length;
  // Lone surrogates have no UTF-8 form and are shown escaped.
  PyObject* bytes = PyUnicode_AsEncodedString(self->name, "utf-8", "backslashreplace");
  char* text;
  if (!bytes || PyBytes_AsStringAndSize(bytes, &text, &length) < 0) {
    Py_XDECREF(bytes);
    return 0;
  }
  uint32_t id = length ? ep_intern(text, (size_t)length) : ep_intern("(unnamed)", 9);
  Py_DECREF(bytes);
  PyObject* value = PyLong_FromUnsignedLong(id);
  // Bound the cache: a program may create any number of names.
  if (value && PyDict_Size(name_ids) > 100000) PyDict_Clear(name_ids);
  int failed = !value || PyDict_SetItem(name_ids, self->name, value) < 0;
  Py_XDECREF(value);
  if (failed) return 0;
  self->name_id = id;
  return id;
}

static int register_args(Op* self) {
  if (self->args_epoch == args_epoch) return 0;
  if (PyList_Append(args_list, self->args) < 0) return -1;
  self->args_id = (uint32_t)PyList_Size(args_list);
  self->args_epoch = args_epoch;
  return 0;
}

static PyObject* op_enter(PyObject* object, PyObject* Py_UNUSED(unused)) {
  Op* self = (Op*)object;
  if (ep_recording_ops()) {
    uint32_t name = name_id(self);
    if (!name) return NULL;
    if (self->args && register_args(self) < 0) return NULL;
    uint64_t frame;
    if (suspendable_frame(&frame) < 0) return NULL;
    ep_push(name, 0, self->args ? self->args_id : 0, self, frame);
  }
  Py_INCREF(object);
  return object;
}

static PyObject* op_exit(PyObject* self, PyObject* const* Py_UNUSED(args),
                         Py_ssize_t Py_UNUSED(count)) {
  if (ep_recording_ops()) ep_pop_owner(self);
  Py_RETURN_NONE;
}

static PyObject* op_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (PyTuple_Size(args) != 1 || (kwargs && PyDict_Size(kwargs) > 0)) {
    PyErr_SetString(PyExc_TypeError,
                    "an op can only be called as a decorator of one function: @op(\"name\")");
    return NULL;
  }
  if (!decorator) {
    PyErr_SetString(PyExc_RuntimeError, "import epprof_nb before using an op as a decorator");
    return NULL;
  }
  return PyObject_CallFunctionObjArgs(decorator, self, PyTuple_GetItem(args, 0), NULL);
}

static PyObject* op_get_name(PyObject* self, void* Py_UNUSED(closure)) {
  PyObject* name = ((Op*)self)->name;
  Py_INCREF(name);
  return name;
}

static PyObject* op_get_args(PyObject* self, void* Py_UNUSED(closure)) {
  PyObject* args = ((Op*)self)->args;
  if (!args) Py_RETURN_NONE;
  return PyDict_Copy(args);
}

static PyObject* op_repr(PyObject* self) {
  Op* op = (Op*)self;
  if (!op->args) return PyUnicode_FromFormat("op(%R)", op->name);
  return PyUnicode_FromFormat("op(%R, **%R)", op->name, op->args);
}

static PyMethodDef methods[] = {
    {"__enter__", op_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))op_exit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"name", op_get_name, NULL, "The op's name.", NULL},
    {"args", op_get_args, NULL, "A copy of the keyword arguments, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static const char doc[] =
    "op(name, /, **args)\n--\n\n"
    "A named range: GPU work launched inside it is attributed to it.\n"
    "\n"
    "Use it as a context manager or as a decorator. It can be reused, nested and entered from\n"
    "several threads. In coroutines and generators it is suspended at each ``await`` or ``yield``\n"
    "and resumed afterwards. Outside a session it does nothing.\n"
    "\n"
    "Parameters\n"
    "----------\n"
    "name : str\n"
    "    Name of the op in tables and views.\n"
    "**args\n"
    "    Values to record with the op, shown in the column ``args``.\n"
    "\n"
    "Examples\n"
    "--------\n"
    ">>> import epprof_nb\n"
    ">>> with epprof_nb.op(\"attention\", layer=3):\n"
    "...     pass\n"
    ">>> @epprof_nb.op(\"step\")\n"
    "... def step(batch):\n"
    "...     return batch\n"
    ">>> step(1)\n"
    "1\n";

static PyType_Slot slots[] = {
    {Py_tp_doc, (void*)doc},         {Py_tp_new, op_new},
    {Py_tp_dealloc, op_dealloc},     {Py_tp_methods, methods},
    {Py_tp_getset, getters},         {Py_tp_call, op_call},
    {Py_tp_repr, op_repr},           {0, NULL},
};

static PyType_Spec spec = {
    .name = "epprof_nb.op",
    .basicsize = sizeof(Op),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

PyObject* op_type_create(PyObject* module) {
  if (!name_ids) name_ids = PyDict_New();
  if (!args_list) args_list = PyList_New(0);
  if (!name_ids || !args_list) return NULL;
  PyObject* type = PyType_FromModuleAndSpec(module, &spec, NULL);
  if (!type) return NULL;
  allocate = (allocfunc)PyType_GetSlot((PyTypeObject*)type, Py_tp_alloc);
  release = (freefunc)PyType_GetSlot((PyTypeObject*)type, Py_tp_free);
  return type;
}

// -- module functions about ops -------------------------------------------------------------

static PyObject* replace_function(PyObject** place, PyObject* function) {
  PyObject* old = *place;
  Py_INCREF(function);
  *place = function;
  Py_XDECREF(old);
  Py_RETURN_NONE;
}

PyObject* op_set_decorator(PyObject* Py_UNUSED(module), PyObject* function) {
  return replace_function(&decorator, function);
}

PyObject* op_set_suspender(PyObject* Py_UNUSED(module), PyObject* function) {
  return replace_function(&suspender, function);
}

PyObject* op_args_of(PyObject* Py_UNUSED(module), PyObject* id) {
  long index = PyLong_AsLong(id);
  if (index == -1 && PyErr_Occurred()) return NULL;
  if (index < 1 || index > PyList_Size(args_list)) Py_RETURN_NONE;
  PyObject* args = PyList_GetItem(args_list, index - 1);
  Py_XINCREF(args);
  return args;
}

PyObject* op_clear_args(PyObject* Py_UNUSED(module), PyObject* Py_UNUSED(unused)) {
  args_epoch++;
  if (PyList_SetSlice(args_list, 0, PyList_Size(args_list), NULL) < 0) return NULL;
  Py_RETURN_NONE;
}
