#include "python/op_object.h"

#include <math.h>
#include <string.h>

#include "core/api.h"
#include "python/greenlet_switches.h"

typedef struct {
  PyObject_HEAD
  PyObject* name;  // an exact str
  PyObject* args;  // dict, or NULL
  uint32_t name_id;  // id in `session`; 0: none yet
  uint32_t args_id;
  uint64_t session;
  uint16_t category;  // 0: a range
} Op;

#define TASK 12  // Category::kTask

// Names and arguments of the ops of one session. The drained columns refer to the lists and keep
// them alive. Protected by the GIL.
#define OP_NAME 0x80000000u    // marks ids that index `names`, not the string table
#define MAX_NAMES 250000       // further names become names[0]
#define MAX_ARGS_BYTES (256 << 20)
static struct {
  PyObject* names;
  PyObject* ids;   // name -> id
  PyObject* args;  // JSON texts; id = index + 1
  size_t args_bytes;
  uint32_t lost_args_id;  // replaces arguments beyond MAX_ARGS_BYTES; 0: not needed
  uint64_t number;
} session;

static PyObject* args_formatter;
static PyObject* decorator;
static PyObject* suspender;
// dicts: name of an op -> function to call at its begin, or end; NULL: none
static PyObject *begin_hooks, *end_hooks;

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

int generator_frame(uint64_t* id) {
  *id = 0;
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) return 0;
  PyObject* code = (PyObject*)PyFrame_GetCode(frame);
  long flags = code_flags(code);
  Py_DECREF(code);
  if (flags == -1) return -1;
  // CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR (documented in `inspect`).
  if (flags & (0x20 | 0x80 | 0x200)) *id = (uint64_t)(uintptr_t)frame;
  return 0;
}

int suspendable_frame(uint64_t* id) {
  if (generator_frame(id) < 0) return -1;
  if (!*id || !suspender) return 0;
  PyObject* done = PyObject_CallFunctionObjArgs(suspender, (PyObject*)PyEval_GetFrame(), NULL);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

int resume_unseen_frame(void) {
  uint64_t id;
  if (!epprof_suspended_frames()) return 0;
  if (generator_frame(&id) < 0) return -1;
  if (!id || !epprof_is_suspended(id)) return 0;
  epprof_resume(id);
  return suspendable_frame(&id);
}

// The slots of the type, looked up once. Ops are not garbage-collected, which would double the cost
// of creating one. A reference cycle through the arguments is unlikely.
static allocfunc allocate;
static freefunc release;

// -- the type -------------------------------------------------------------------------------

// Decorates a function with `op`; NULL: with an op named after the function.
static PyObject* decorate(PyObject* op, PyObject* function) {
  if (!decorator) {
    PyErr_SetString(PyExc_RuntimeError, "import epprof_nb before using an op as a decorator");
    return NULL;
  }
  return PyObject_CallFunctionObjArgs(decorator, op ? op : Py_None, function, NULL);
}

// Whether `@op` without parentheses was applied to this object. This includes classmethod objects
// and properties, which are not callable. The decorator refuses properties with a reason.
static int is_decorated(PyObject* object) {
  return PyCallable_Check(object) || PyObject_HasAttrString(object, "__func__") ||
         PyObject_HasAttrString(object, "fget");
}

static PyObject* op_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  if (PyTuple_Size(args) != 1) {
    PyErr_Format(PyExc_TypeError,
                 "op() takes one name and keyword arguments (%zd positional arguments given)",
                 PyTuple_Size(args));
    return NULL;
  }
  PyObject* name = PyTuple_GetItem(args, 0);
  if (!name) return NULL;
  if (!PyUnicode_Check(name) && (!kwargs || PyDict_Size(kwargs) == 0) && is_decorated(name)) {
    return decorate(NULL, name);
  }
  if (!PyUnicode_Check(name)) {
    PyErr_Format(PyExc_TypeError, "the name of op() must be a str, not %R", name);
    return NULL;
  }
  Op* self = (Op*)allocate(type, 0);
  if (!self) return NULL;
  self->name = PyUnicode_FromObject(name);  // looking up an exact str runs no Python code
  if (!self->name) {
    Py_DECREF(self);
    return NULL;
  }
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

// -- names and arguments --------------------------------------------------------------------

int op_start_session(void) {
  PyObject* names = PyList_New(0);
  PyObject* ids = PyDict_New();
  PyObject* args = PyList_New(0);
  PyObject* other = PyUnicode_FromString("(other names)");
  if (!names || !ids || !args || !other || PyList_Append(names, other) < 0) {
    Py_XDECREF(names);
    Py_XDECREF(ids);
    Py_XDECREF(args);
    Py_XDECREF(other);
    return -1;
  }
  Py_DECREF(other);
  PyObject *old_names = session.names, *old_ids = session.ids, *old_args = session.args;
  session.names = names;
  session.ids = ids;
  session.args = args;
  session.args_bytes = 0;
  session.lost_args_id = 0;
  session.number++;
  Py_XDECREF(old_names);
  Py_XDECREF(old_ids);
  Py_XDECREF(old_args);
  return 0;
}

int op_add_session(PyObject* columns) {
  if (PyDict_SetItemString(columns, "op_names", session.names) < 0) return -1;
  return PyDict_SetItemString(columns, "op_args", session.args);
}

static void join_session(Op* self) {
  if (self->session == session.number) return;
  self->session = session.number;
  self->name_id = self->args_id = 0;
}

// The name as tables show it.
static PyObject* shown_name(PyObject* name) {
  if (PyUnicode_GetLength(name) == 0) return PyUnicode_FromString("(unnamed)");
  PyObject* bytes = to_utf8(name);
  char* text;
  Py_ssize_t length;
  if (!bytes || PyBytes_AsStringAndSize(bytes, &text, &length) < 0) {
    Py_XDECREF(bytes);
    return NULL;
  }
  PyObject* shown = PyUnicode_DecodeUTF8(text, length, NULL);
  Py_DECREF(bytes);
  if (!shown || PyUnicode_GetLength(shown) != PyUnicode_GetLength(name)) return shown;
  Py_DECREF(shown);
  Py_INCREF(name);
  return name;
}

// Sets `name_id`. Runs no Python code, so the session cannot change before the push.
static int register_name(Op* self) {
  if (self->name_id) return 0;
  PyObject* known = PyDict_GetItemWithError(session.ids, self->name);
  if (known) {
    self->name_id = (uint32_t)PyLong_AsUnsignedLong(known);
    return 0;
  }
  if (PyErr_Occurred()) return -1;
  Py_ssize_t index = PyList_Size(session.names);
  if (index > MAX_NAMES) {
    self->name_id = OP_NAME;
    return 0;
  }
  uint32_t id = OP_NAME | (uint32_t)index;
  PyObject* shown = shown_name(self->name);
  PyObject* value = PyLong_FromUnsignedLong(id);
  int failed = !shown || !value || PyList_Append(session.names, shown) < 0 ||
               PyDict_SetItem(session.ids, self->name, value) < 0;
  Py_XDECREF(shown);
  Py_XDECREF(value);
  if (!failed) self->name_id = id;
  return failed ? -1 : 0;
}

// JSON of short numbers and ASCII strings, as json.dumps writes it. `failed` is set for other
// values.
typedef struct {
  char text[512];
  size_t used;
  int failed;
} Json;

static void add_bytes(Json* json, const char* bytes, size_t count) {
  if (count > sizeof json->text - json->used) json->failed = 1;
  if (json->failed) return;
  memcpy(json->text + json->used, bytes, count);
  json->used += count;
}

static void add_string(Json* json, PyObject* string) {
  Py_ssize_t length;
  const char* text = NULL;
  if (PyUnicode_GetLength(string) < (Py_ssize_t)sizeof json->text) {
    text = PyUnicode_AsUTF8AndSize(string, &length);
  }
  if (!text) {
    PyErr_Clear();
    json->failed = 1;
    return;
  }
  add_bytes(json, "\"", 1);
  for (Py_ssize_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c < 0x20 || c >= 0x7f) json->failed = 1;
    if (c == '"' || c == '\\') add_bytes(json, "\\", 1);
    add_bytes(json, text + i, 1);
  }
  add_bytes(json, "\"", 1);
}

static void add_value(Json* json, PyObject* value) {
  if (value == Py_None) {
    add_bytes(json, "null", 4);
  } else if (value == Py_True) {
    add_bytes(json, "true", 4);
  } else if (value == Py_False) {
    add_bytes(json, "false", 5);
  } else if (PyUnicode_CheckExact(value)) {
    add_string(json, value);
  } else if (PyLong_CheckExact(value)) {
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    char digits[24];
    size_t at = sizeof digits;
    unsigned long long rest = number < 0 ? 0 - (unsigned long long)number
                                         : (unsigned long long)number;
    do digits[--at] = (char)('0' + rest % 10); while (rest /= 10);
    if (number < 0) digits[--at] = '-';
    if (overflow) json->failed = 1;
    add_bytes(json, digits + at, sizeof digits - at);
  } else if (PyFloat_CheckExact(value)) {
    double number = PyFloat_AsDouble(value);
    char* digits = isfinite(number)
                       ? PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, NULL) : NULL;
    if (digits) {
      add_bytes(json, digits, strlen(digits));
    } else {
      PyErr_Clear();
      json->failed = 1;
    }
    PyMem_Free(digits);
  } else {
    json->failed = 1;
  }
}

static PyObject* args_text(PyObject* args) {
  Json json = {.used = 0, .failed = 0};
  PyObject *key, *value;
  Py_ssize_t at = 0;
  add_bytes(&json, "{", 1);
  while (!json.failed && PyDict_Next(args, &at, &key, &value)) {
    if (json.used > 1) add_bytes(&json, ", ", 2);
    add_string(&json, key);
    add_bytes(&json, ": ", 2);
    add_value(&json, value);
  }
  add_bytes(&json, "}", 1);
  if (!json.failed) return PyUnicode_FromStringAndSize(json.text, (Py_ssize_t)json.used);
  if (!args_formatter) return PyUnicode_FromString("{}");
  return PyObject_CallFunctionObjArgs(args_formatter, args, NULL);
}

static int append_args(PyObject* text, uint32_t* id) {
  if (PyList_Append(session.args, text) < 0) return -1;
  *id = (uint32_t)PyList_Size(session.args);
  return 0;
}

// Sets `args_id`. The arguments are recorded as text, so that their values can be released.
static int register_args(Op* self) {
  PyObject* text = args_text(self->args);  // may run Python code, which may start a session
  if (!text) return -1;
  join_session(self);
  int failed = 0;
  session.args_bytes += 64 + (size_t)PyUnicode_GetLength(text);
  if (session.args_bytes <= MAX_ARGS_BYTES) {
    failed = append_args(text, &self->args_id);
  } else {
    if (!session.lost_args_id) {
      PyObject* lost = PyUnicode_FromString(
          "{\"(arguments)\": \"not recorded: a session keeps at most 256 MiB of them\"}");
      failed = !lost || append_args(lost, &session.lost_args_id) < 0 ? -1 : 0;
      Py_XDECREF(lost);
    }
    self->args_id = session.lost_args_id;
  }
  Py_DECREF(text);
  return failed;
}

// Calls the hook of the name, if it has one, before the op begins or ends.
static int call_op_hook(PyObject* hooks, PyObject* name) {
  PyObject* hook = PyDict_GetItemWithError(hooks, name);
  if (!hook) return PyErr_Occurred() ? -1 : 0;
  Py_INCREF(hook);  // it may remove the hooks
  PyObject* done = PyObject_CallFunctionObjArgs(hook, NULL);
  Py_DECREF(hook);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

static PyObject* op_enter(PyObject* object, PyObject* Py_UNUSED(unused)) {
  Op* self = (Op*)object;
  if (begin_hooks && call_op_hook(begin_hooks, self->name) < 0) return NULL;
  if (epprof_recording_ops()) {
    uint64_t frame;
    int64_t begin = epprof_cost_begin(EPPROF_COST_OPS);
    if (resume_unseen_frame() < 0 || suspendable_frame(&frame) < 0) return NULL;
    join_session(self);
    if (self->args && !self->args_id && register_args(self) < 0) return NULL;
    join_session(self);
    if (register_name(self) < 0) return NULL;
    see_greenlet();
    epprof_push(self->name_id, self->category, self->args_id, self, frame);
    epprof_cost_end(EPPROF_COST_OPS, begin);
  }
  Py_INCREF(object);
  return object;
}

static PyObject* op_exit(PyObject* self, PyObject* const* Py_UNUSED(args),
                         Py_ssize_t Py_UNUSED(count)) {
  int failed = end_hooks && call_op_hook(end_hooks, ((Op*)self)->name) < 0;
  if (epprof_recording_ops()) {
    see_greenlet();
    epprof_pop_owner(self);
  }
  if (failed) return NULL;
  Py_RETURN_NONE;
}

static PyObject* op_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (PyTuple_Size(args) != 1 || (kwargs && PyDict_Size(kwargs) > 0)) {
    PyErr_SetString(PyExc_TypeError,
                    "an op can only be called as a decorator of one function: @op(\"name\")");
    return NULL;
  }
  return decorate(self, PyTuple_GetItem(args, 0));
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
    "Use it as a context manager or as a decorator. As a decorator without parentheses, it takes\n"
    "the name of the function. It can be reused, nested and entered from\n"
    "several threads. In coroutines and generators it is suspended at each ``await`` or ``yield``\n"
    "and resumed afterwards, and in greenlets while another one runs. Outside a session it does\n"
    "nothing.\n"
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
    "1\n"
    ">>> @epprof_nb.op\n"
    "... def forward(batch):\n"
    "...     return batch + 1\n"
    ">>> forward(1)\n"
    "2\n";

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
  if (!session.names && op_start_session() < 0) return NULL;
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

PyObject* op_task(PyObject* module, PyObject* args, PyObject* kwargs) {
  PyObject* type = PyObject_GetAttrString(module, "Op");
  PyObject* op = type ? op_new((PyTypeObject*)type, args, kwargs) : NULL;
  Py_XDECREF(type);
  if (op) ((Op*)op)->category = TASK;
  return op;
}

PyObject* op_set_decorator(PyObject* Py_UNUSED(module), PyObject* function) {
  return replace_function(&decorator, function);
}

PyObject* op_set_args_formatter(PyObject* Py_UNUSED(module), PyObject* function) {
  return replace_function(&args_formatter, function);
}

PyObject* op_set_suspender(PyObject* Py_UNUSED(module), PyObject* function) {
  return replace_function(&suspender, function);
}

PyObject* op_set_hooks(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject* given[2];
  if (!PyArg_ParseTuple(args, "OO", &given[0], &given[1])) return NULL;
  for (int i = 0; i < 2; i++) {
    if (given[i] == Py_None || PyDict_CheckExact(given[i])) continue;
    PyErr_Format(PyExc_TypeError, "the hooks must be a dict or None, not %R", given[i]);
    return NULL;
  }
  PyObject* old[2] = {begin_hooks, end_hooks};
  for (int i = 0; i < 2; i++) {
    if (given[i] != Py_None) Py_INCREF(given[i]);
  }
  begin_hooks = given[0] == Py_None ? NULL : given[0];
  end_hooks = given[1] == Py_None ? NULL : given[1];
  Py_XDECREF(old[0]);
  Py_XDECREF(old[1]);
  Py_RETURN_NONE;
}

// Processor time of the calling thread.
static int64_t processor_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// Signals are not checked, so that nothing shortens it.
PyObject* op_spin(PyObject* Py_UNUSED(module), PyObject* args) {
  long long length;
  int keeps_gil;
  if (!PyArg_ParseTuple(args, "Lp", &length, &keeps_gil)) return NULL;
  PyThreadState* state = keeps_gil ? NULL : PyEval_SaveThread();
  int64_t processor = processor_ns(), start = epprof_now_ns(), now;
  do now = epprof_now_ns(); while (now - start < length);
  processor = processor_ns() - processor;
  if (state) PyEval_RestoreThread(state);
  return Py_BuildValue("LL", (long long)(now - start), (long long)processor);
}
