// The functions of _native for Python stacks, over stacks/api.h.
#define _GNU_SOURCE
#include "python/convert.h"

#include <dlfcn.h>

#include "stacks/api.h"

// PyCodeEvent of Python 3.12.
enum { CODE_DESTROYED = 1 };

static int on_code_event(int event, void* code) {
  if (event == CODE_DESTROYED) epprof_code_destroyed(code);
  return 0;
}

static int watcher = -1;

static void (*free_code)(PyObject*);

static void destroy_code(PyObject* code) {
  epprof_code_destroyed(code);
  free_code(code);
}

// Counts the code objects that end. Python 3.11 has no watchers, so the type's function that frees
// them is replaced, once per process.
static const char* watch_code(int minor) {
  if (watcher >= 0 || free_code) return NULL;
  if (minor >= 12) {
    typedef int (*AddWatcher)(int (*)(int, void*));
    AddWatcher add = (AddWatcher)dlsym(RTLD_DEFAULT, "PyCode_AddWatcher");
    watcher = add ? add(on_code_event) : -1;
    if (watcher >= 0) return NULL;
    PyErr_Clear();
    return "the interpreter has no place for another watcher of code objects";
  }
  char* type = dlsym(RTLD_DEFAULT, "PyCode_Type");
  if (!type) return "the interpreter does not report when it frees a code object";
  const size_t tp_dealloc = 48;  // Include/cpython/object.h
  void (**slot)(PyObject*) = (void (**)(PyObject*))(type + tp_dealloc);
  if (*slot != (void (*)(PyObject*))PyType_GetSlot((PyTypeObject*)type, Py_tp_dealloc)) {
    return "the type of code objects has another layout";
  }
  free_code = *slot;
  *slot = destroy_code;
  return NULL;
}

static PyObject* prepare_stacks(PyObject* Py_UNUSED(m), PyObject* value) {
  uint32_t minor;
  if (to_u32(value, &minor) < 0) return NULL;
  void* (*main_interpreter)(void) = (void* (*)(void))dlsym(RTLD_DEFAULT, "PyInterpreterState_Main");
  struct epprof_interpreter interpreter = {
      (void* (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"),
      (void* (*)(void))dlsym(RTLD_DEFAULT, "PyInterpreterState_Head"),
      main_interpreter ? main_interpreter() : NULL,
  };
  const char* why_not =
      epprof_stacks_prepare((int)minor, &interpreter, dlsym(RTLD_DEFAULT, "_PyRuntime"));
  if (!why_not) why_not = watch_code((int)minor);
  if (!why_not) Py_RETURN_NONE;
  return PyUnicode_FromString(why_not);
}

static PyObject* begin_stacks(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  epprof_stacks_begin();
  Py_RETURN_NONE;
}

static PyObject* start_stacks(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  epprof_stacks_begin();
  epprof_stacks_read(1);
  Py_RETURN_NONE;
}

static PyObject* pause_stacks(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  epprof_stacks_read(0);
  Py_RETURN_NONE;
}

static PyObject* resume_stacks(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  epprof_stacks_read(1);
  Py_RETURN_NONE;
}

static PyObject* stop_stacks(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  epprof_stacks_stop();
  Py_RETURN_NONE;
}

static PyObject* end_stacks(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  Py_BEGIN_ALLOW_THREADS
  epprof_stacks_end();
  Py_END_ALLOW_THREADS
  if (watcher >= 0) {
    int (*clear)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "PyCode_ClearWatcher");
    if (clear && clear(watcher) < 0) return NULL;
    watcher = -1;
  }
  Py_RETURN_NONE;
}

static PyObject* drain_stacks(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  uint64_t counts[2];
  PyObject* dict = columns_to_dict(epprof_stacks_drain(counts));
  return add_count(add_count(dict, "truncated", counts[0]), "dropped", counts[1]);
}

static PyObject* set_stack_bound(PyObject* Py_UNUSED(m), PyObject* value) {
  uint64_t bytes;
  if (to_u64(value, &bytes) < 0) return NULL;
  epprof_stacks_set_bound(bytes);
  Py_RETURN_NONE;
}

static PyObject* stay_in_function(PyObject* Py_UNUSED(m), PyObject* value) {
  uint32_t shown;
  if (to_u32(value, &shown) < 0) return NULL;
  epprof_stacks_stay(shown);
  Py_RETURN_NONE;
}

static PyObject* leave_function(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  epprof_stacks_leave();
  Py_RETURN_NONE;
}

static PyObject* current_stack(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  return PyLong_FromLong((int32_t)epprof_stacks_current());
}

static PyObject* text_of(const struct epprof_text* text) {
  const char* encoding = text->kind == 1 ? "latin-1" : text->kind == 2 ? "utf-16-le" : "utf-32-le";
  return PyUnicode_Decode(text->data, (Py_ssize_t)(text->length * text->kind), encoding,
                          "surrogatepass");
}

// With the GIL, which keeps the code objects of the frames alive.
static PyObject* described(const struct epprof_frame* frame) {
  struct epprof_code code = epprof_read_code(frame->code);
  PyObject* file = text_of(&code.file);
  PyObject* function = file ? text_of(&code.function) : NULL;
  if (!function) {
    Py_XDECREF(file);
    return NULL;
  }
  int32_t line =
      epprof_line_at(code.line_table, code.line_table_bytes, code.first_line, frame->offset);
  return Py_BuildValue("(KiNNii)", (unsigned long long)(uintptr_t)frame->code, frame->offset, file,
                       function, code.first_line, line);
}

// The frames as `sys._getframe` shows them, in the same form. Read here, because the caller's
// instruction changes when this returns.
static PyObject* shown(PyObject* getframe) {
  PyObject* list = PyList_New(0);
  PyObject* frame = list ? PyObject_CallNoArgs(getframe) : NULL;
  while (frame && frame != Py_None) {
    PyObject* code = PyObject_GetAttrString(frame, "f_code");
    PyObject* offset = PyObject_GetAttrString(frame, "f_lasti");
    PyObject* line = PyObject_GetAttrString(frame, "f_lineno");
    PyObject* file = code ? PyObject_GetAttrString(code, "co_filename") : NULL;
    PyObject* function = code ? PyObject_GetAttrString(code, "co_qualname") : NULL;
    PyObject* first = code ? PyObject_GetAttrString(code, "co_firstlineno") : NULL;
    PyObject* row = NULL;
    if (offset && line && file && function && first) {
      row = Py_BuildValue("(KOOOOO)", (unsigned long long)(uintptr_t)code, offset, file, function,
                          first, line);
    }
    PyObject* next = row ? PyObject_GetAttrString(frame, "f_back") : NULL;
    if (!next || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
    Py_XDECREF(code);
    Py_XDECREF(offset);
    Py_XDECREF(line);
    Py_XDECREF(file);
    Py_XDECREF(function);
    Py_XDECREF(first);
    Py_DECREF(frame);
    frame = list ? next : (Py_XDECREF(next), NULL);
  }
  if (!frame) Py_CLEAR(list);
  Py_XDECREF(frame);
  return list;
}

static PyObject* walk_stack(PyObject* Py_UNUSED(m), PyObject* getframe) {
  PyObject* expected = shown(getframe);
  if (!expected) return NULL;
  struct epprof_frame frames[EPPROF_MAX_FRAMES];
  size_t count;
  Py_BEGIN_ALLOW_THREADS
  count = epprof_stacks_walk(frames);
  Py_END_ALLOW_THREADS
  PyObject* list = PyList_New(0);
  for (size_t i = 0; list && i < count; i++) {
    PyObject* row = described(&frames[i]);
    if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  if (!list) Py_DECREF(expected);
  return list ? Py_BuildValue("(NN)", list, expected) : NULL;
}

PyMethodDef stack_functions[] = {
    {"prepare_stacks", prepare_stacks, METH_O, NULL},
    {"begin_stacks", begin_stacks, METH_NOARGS, NULL},
    {"start_stacks", start_stacks, METH_NOARGS, NULL},
    {"pause_stacks", pause_stacks, METH_NOARGS, NULL},
    {"resume_stacks", resume_stacks, METH_NOARGS, NULL},
    {"stop_stacks", stop_stacks, METH_NOARGS, NULL},
    {"end_stacks", end_stacks, METH_NOARGS, NULL},
    {"set_stack_bound", set_stack_bound, METH_O, NULL},
    {"drain_stacks", drain_stacks, METH_NOARGS, NULL},
    {"current_stack", current_stack, METH_NOARGS, NULL},
    {"stay_in_function", stay_in_function, METH_O, NULL},
    {"leave_function", leave_function, METH_NOARGS, NULL},
    {"walk_stack", walk_stack, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
