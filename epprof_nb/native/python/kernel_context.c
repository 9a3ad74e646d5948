#include "python/kernel_context.h"

#include <stdlib.h>

#include "python/device_arrays.h"
#include "python/kernel_launches.h"
#include "python/numpy_arrays.h"
#include "python/output_checks.h"

enum { kFewOutputs = 4 };

typedef struct {
  PyObject_HEAD
  python_kernel* kernel;
  PyObject* node;
  PyObject** outputs;  // by number; null where not made
  PyObject* few[kFewOutputs];
  ep_tensor *tensors, few_tensors[kFewOutputs];  // of the outputs
  launch_arrays inputs;
  ep_call* call;  // null once the kernel has returned
  size_t next;    // the next output that `out` makes without an index
  int device;     // -1: the host device
  void* stream;
  address_argument address;  // of the launches so far
} Context;

static PyTypeObject* context_type;

// Attributes that the context takes from the node.
static const char* const node_attributes[] = {"attrs",       "name",   "op_type", "domain",
                                              "num_outputs", "device", "xp"};
enum { kNodeAttributes = sizeof node_attributes / sizeof *node_attributes };
static PyObject* node_names[kNodeAttributes];

PyObject* context_new(python_kernel* kernel, ep_call* call) {
  Context* self = PyObject_New(Context, context_type);
  if (!self) return NULL;
  self->kernel = kernel;
  Py_INCREF(kernel->node);
  self->node = kernel->node;
  self->call = call;
  self->next = 0;
  for (size_t i = 0; i < kFewOutputs; i++) self->few[i] = NULL;
  self->outputs = self->few;
  self->tensors = self->few_tensors;
  self->device = ep_call_device(call, &self->stream);
  self->inputs = (launch_arrays){NULL, NULL, 0};
  self->address.is_given = 0;
  if (kernel->output_count > kFewOutputs) {
    self->outputs = calloc(kernel->output_count, sizeof *self->outputs);
    self->tensors = calloc(kernel->output_count, sizeof *self->tensors);
    if (!self->outputs || !self->tensors) {
      free(self->outputs);
      free(self->tensors);
      self->outputs = self->few;
      self->kernel = NULL;
      Py_DECREF(self);
      return PyErr_NoMemory();
    }
  }
  return (PyObject*)self;
}

static void drop_outputs(Context* self) {
  if (!self->kernel) return;
  for (size_t i = 0; i < self->kernel->output_count; i++) {
    PyObject* array = self->outputs[i];
    self->outputs[i] = NULL;
    if (!array) continue;
    if (self->tensors[i].on_device) {
      device_array_put(self->kernel, kFirstOutput + i, &self->tensors[i], array);
    } else {
      Py_DECREF(array);
    }
  }
  if (self->outputs != self->few) {
    free(self->outputs);
    free(self->tensors);
  }
  self->outputs = self->few;
  self->kernel = NULL;
}

static void context_dealloc(PyObject* object) {
  Context* self = (Context*)object;
  PyTypeObject* type = Py_TYPE(object);
  drop_outputs(self);
  Py_XDECREF(self->node);
  PyObject_Free(object);
  Py_DECREF(type);
}

void context_end_call(PyObject* object) { ((Context*)object)->call = NULL; }

void context_drop_outputs(PyObject* object) { drop_outputs((Context*)object); }

PyObject* context_output(PyObject* object, size_t index) {
  return ((Context*)object)->outputs[index];
}

const void* context_output_data(PyObject* object, size_t index) {
  return ((Context*)object)->tensors[index].data;
}

void context_set_inputs(PyObject* object, PyObject* const* arrays, const ep_tensor* inputs,
                        size_t count) {
  ((Context*)object)->inputs = (launch_arrays){arrays, inputs, count};
}

void context_keep_launches(PyObject* object, ep_call* call, PyObject* function) {
  Context* self = (Context*)object;
  for (size_t i = 0; i < self->kernel->output_count; i++) {
    if (!self->outputs[i]) self->tensors[i].present = 0;
  }
  ep_call_keep_launches(call, function, self->tensors, self->kernel->output_count);
}

static _Thread_local PyObject* current;

PyObject* context_make_current(PyObject* context) {
  PyObject* previous = current;
  current = context;
  return previous;
}

int context_check_outputs(PyObject* object) {
  Context* self = (Context*)object;
  for (size_t i = 0; i < self->kernel->output_count; i++) {
    const expected_output* output = &self->kernel->outputs[i];
    if (!output->present || self->outputs[i]) continue;
    PyErr_Format(PyExc_RuntimeError,
                 "the kernel did not make output %zu (%s). Call ctx.out(shape, dtype%s) and write "
                 "the result into the array that it returns",
                 i, output->name, i ? ", index=..." : "");
    return -1;
  }
  return 0;
}

static PyObject* context_out(PyObject* object, PyObject* const* args, Py_ssize_t count,
                             PyObject* keywords) {
  Context* self = (Context*)object;
  PyObject *shape = NULL, *dtype = NULL, *index = NULL;
  PyObject** places[] = {&shape, &dtype, &index};
  static const char* const names[] = {"shape", "dtype", "index"};
  if (count > 2) {
    PyErr_SetString(PyExc_TypeError, "ctx.out(shape, dtype=None, *, index=None) takes a shape and "
                                     "a dtype; give the output's number as index=");
    return NULL;
  }
  for (Py_ssize_t i = 0; i < count; i++) *places[i] = args[i];
  for (Py_ssize_t i = 0; keywords && i < PyTuple_Size(keywords); i++) {
    PyObject* keyword = PyTuple_GetItem(keywords, i);
    size_t k = 0;
    while (k < 3 && PyUnicode_CompareWithASCIIString(keyword, names[k]) != 0) k++;
    if (k == 3) return PyErr_Format(PyExc_TypeError, "ctx.out has no argument %R", keyword);
    *places[k] = args[count + i];
  }
  if (!shape) {
    PyErr_SetString(PyExc_TypeError, "ctx.out needs the shape of the output");
    return NULL;
  }
  if (!self->call) {
    PyErr_SetString(PyExc_RuntimeError, "ctx.out was called after the kernel had returned");
    return NULL;
  }
  size_t at = self->next;
  if (index && index != Py_None) {
    at = PyLong_AsSize_t(index);
    if (PyErr_Occurred()) return NULL;
  }
  if (at >= self->kernel->output_count) {
    return PyErr_Format(PyExc_IndexError, "the node has %zu output%s; ctx.out asked for number %zu",
                        self->kernel->output_count, self->kernel->output_count == 1 ? "" : "s", at);
  }
  self->next = at + 1;
  const expected_output* output = &self->kernel->outputs[at];
  if (!output->present) Py_RETURN_NONE;
  if (self->outputs[at]) {
    return PyErr_Format(PyExc_RuntimeError, "output %zu (%s) was made twice", at, output->name);
  }
  int64_t dims[kMaxRank];
  size_t rank;
  if (parse_shape(shape, dims, &rank) < 0 || check_shape(output, dims, rank, at) < 0) return NULL;
  ep_tensor* tensor = &self->tensors[at];
  char* failed;
  if (self->device < 0) {
    failed = ep_call_output(self->call, at, dims, rank, tensor);
  } else {
    Py_BEGIN_ALLOW_THREADS  // the allocation may wait for a device whose work needs the GIL
    failed = ep_call_output(self->call, at, dims, rank, tensor);
    Py_END_ALLOW_THREADS
  }
  if (failed) {
    PyErr_Format(ep_call_is_replayed(self->call) ? PyExc_ValueError : PyExc_MemoryError,
                 "output %zu (%s): %s", at, output->name, failed);
    free(failed);
    return NULL;
  }
  if (!tensor->present) Py_RETURN_NONE;
  PyObject* array = tensor->on_device
                        ? device_array_get(self->kernel, kFirstOutput + at, tensor, self->device)
                        : numpy_view(tensor, 1);
  if (array && dtype && dtype != Py_None && check_dtype(output, array, dtype, at) < 0) {
    Py_CLEAR(array);
  }
  if (!array) return NULL;
  Py_INCREF(array);
  self->outputs[at] = array;
  return array;
}

static PyObject* context_launch(PyObject* object, PyObject* const* args, Py_ssize_t count,
                                PyObject* keywords) {
  Context* self = (Context*)object;
  if (!self->call) {
    PyErr_SetString(PyExc_RuntimeError, "ctx.launch was called after the kernel had returned");
    return NULL;
  }
  if (self->device < 0) {
    PyErr_SetString(PyExc_RuntimeError,
                    "ctx.launch launches CUDA kernels, but this node runs on the host device. Test "
                    "`ctx.device == \"host\"`, and compute with NumPy there");
    return NULL;
  }
  launch_arrays outputs = {self->outputs, self->tensors, self->kernel->output_count};
  return launch_kernel(self->call, &self->inputs, &outputs, args, count, keywords, &self->address);
}

static PyObject* context_repeat_launches(PyObject* object, PyObject* Py_UNUSED(a)) {
  Context* self = (Context*)object;
  if (!self->call) {
    PyErr_SetString(PyExc_RuntimeError,
                    "ctx.repeat_launches was called after the kernel had returned");
    return NULL;
  }
  if (check_repeated(&self->address) < 0) return NULL;
  ep_call_repeat_launches(self->call);
  Py_RETURN_NONE;
}

void note_library_launch(const ep_library_launch* launch, void* const* addresses, size_t count,
                         void* stream) {
  Context* self = (Context*)current;
  if (!self || !self->call || self->device < 0) return;
  launch_arrays outputs = {self->outputs, self->tensors, self->kernel->output_count};
  note_library_launch_of(self->call, &self->inputs, &outputs, launch, addresses, count,
                         stream == self->stream);
}

PyObject* repeat_nothing(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  Context* self = (Context*)current;
  if (self && self->call) ep_call_repeat_nothing(self->call);
  Py_RETURN_NONE;
}

PyObject* note_scratch(PyObject* Py_UNUSED(m), PyObject* args) {
  Context* self = (Context*)current;
  unsigned long long address, bytes;
  if (!PyArg_ParseTuple(args, "KK", &address, &bytes)) return NULL;
  if (self && self->call && self->device >= 0) {
    ep_call_note_scratch(self->call, (const void*)(uintptr_t)address, (size_t)bytes);
  }
  Py_RETURN_NONE;
}

PyObject* current_node(PyObject* Py_UNUSED(m), PyObject* Py_UNUSED(a)) {
  Context* self = (Context*)current;
  PyObject* node = self && self->call ? self->node : Py_None;
  Py_INCREF(node);
  return node;
}

PyObject* launch_in_kernel(PyObject* Py_UNUSED(m), PyObject* const* args, Py_ssize_t count) {
  Context* self = (Context*)current;
  if (self && self->call && self->device >= 0) return context_launch(current, args, count, NULL);
  if (!count) return PyErr_Format(PyExc_TypeError, "ep_launch needs a kernel");
  PyObject* given = PyTuple_New(count - 1);
  for (Py_ssize_t i = 1; given && i < count; i++) {
    Py_INCREF(args[i]);
    PyTuple_SetItem(given, i - 1, args[i]);
  }
  PyObject* done = given ? PyObject_Call(args[0], given, NULL) : NULL;
  Py_XDECREF(given);
  return done;
}

static PyObject* of_node(PyObject* object, void* name) {
  return PyObject_GetAttr(((Context*)object)->node, *(PyObject**)name);
}

static PyObject* stream_of(PyObject* object, void* Py_UNUSED(closure)) {
  Context* self = (Context*)object;
  if (self->device < 0) Py_RETURN_NONE;
  return PyLong_FromVoidPtr(self->stream);
}

static PyObject* context_repr(PyObject* object) {
  PyObject* name = PyObject_GetAttrString(((Context*)object)->node, "name");
  PyObject* text = name ? PyUnicode_FromFormat("<context of node %R>", name) : NULL;
  Py_XDECREF(name);
  return text;
}

int context_type_create(PyObject* module) {
  static PyMethodDef methods[] = {
      {"out", (PyCFunction)(void (*)(void))context_out, METH_FASTCALL | METH_KEYWORDS,
       "The array of an output, to be written into."},
      {"launch", (PyCFunction)(void (*)(void))context_launch, METH_FASTCALL | METH_KEYWORDS,
       "Launch a CUDA kernel on the stream of the node."},
      {"repeat_launches", context_repeat_launches, METH_NOARGS,
       "Let later runs repeat the launches of this call without calling the kernel."},
      {NULL, NULL, 0, NULL},
  };
  static PyGetSetDef attributes[] = {
      {"attrs", of_node, NULL, "The node's attributes, with defaults.", &node_names[0]},
      {"name", of_node, NULL, "Name of the node.", &node_names[1]},
      {"op_type", of_node, NULL, "Type of its operator.", &node_names[2]},
      {"domain", of_node, NULL, "Domain of its operator.", &node_names[3]},
      {"num_outputs", of_node, NULL, "Number of its outputs.", &node_names[4]},
      {"device", of_node, NULL, "Name of the device.", &node_names[5]},
      {"xp", of_node, NULL, "Module of the arrays.", &node_names[6]},
      {"stream", stream_of, NULL, "Address of the CUDA stream; None on the host device.", NULL},
      {NULL, NULL, NULL, NULL, NULL},
  };
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, context_dealloc}, {Py_tp_repr, context_repr},
      {Py_tp_methods, methods},         {Py_tp_getset, attributes},
      {0, NULL},
  };
  static PyType_Spec spec = {"epprof_nb._native.KernelContext", sizeof(Context), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  for (size_t i = 0; i < kNodeAttributes; i++) {
    node_names[i] = PyUnicode_InternFromString(node_attributes[i]);
    if (!node_names[i]) return -1;
  }
  if (launches_create() < 0 || output_checks_create() < 0) return -1;
  context_type = (PyTypeObject*)PyType_FromSpec(&spec);
  if (!context_type) return -1;
  return PyModule_AddObjectRef(module, "KernelContext", (PyObject*)context_type);
}
