// Nodes of a session as Python kernels see them.
#include "python/kernel_calls.h"

#include <stdlib.h>
#include <string.h>

#include "python/device_arrays.h"
#include "python/kernel_context.h"
#include "python/numpy_arrays.h"

static PyObject* list_of(const ep_attribute* attribute) {
  PyObject* tuple = PyTuple_New((Py_ssize_t)attribute->count);
  for (size_t i = 0; tuple && i < attribute->count; i++) {
    PyObject* item;
    if (attribute->ints) {
      item = PyLong_FromLongLong(attribute->ints[i]);
    } else if (attribute->floats) {
      item = PyFloat_FromDouble(attribute->floats[i]);
    } else {
      item = PyUnicode_DecodeUTF8(attribute->strings[i],
                                  (Py_ssize_t)strlen(attribute->strings[i]), "backslashreplace");
    }
    if (!item || PyTuple_SetItem(tuple, (Py_ssize_t)i, item) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

static PyObject* attribute_value(const ep_attribute* attribute) {
  if (attribute->type == EP_TENSOR) return numpy_copy(&attribute->tensor);
  PyObject* list = list_of(attribute);
  if (!list || attribute->type == EP_INTS || attribute->type == EP_FLOATS ||
      attribute->type == EP_STRINGS) {
    return list;
  }
  PyObject* only = PyTuple_GetItem(list, 0);
  Py_INCREF(only);
  Py_DECREF(list);
  return only;
}

static void free_kernel(python_kernel* kernel) {
  for (size_t i = 0; i < kernel->output_count; i++) {
    free(kernel->outputs[i].name);
    free(kernel->outputs[i].dims);
  }
  free(kernel->outputs);
  device_state_free(kernel->device);
  Py_XDECREF(kernel->cell);
  Py_XDECREF(kernel->node);
  free(kernel);
}

static python_kernel* describe_outputs(const ep_node* node, int checks_shapes) {
  python_kernel* kernel = calloc(1, sizeof *kernel);
  kernel->output_count = node->output_count;
  kernel->outputs = calloc(node->output_count + 1, sizeof *kernel->outputs);
  for (size_t i = 0; i < node->output_count; i++) {
    const ep_output* from = &node->outputs[i];
    expected_output* to = &kernel->outputs[i];
    to->present = from->present;
    to->has_shape = from->has_shape && checks_shapes;
    to->type = from->type;
    to->rank = from->rank;
    to->name = strdup(from->name);
    to->dims = calloc(from->rank + 1, sizeof *to->dims);
    if (from->rank) memcpy(to->dims, from->dims, from->rank * sizeof *to->dims);
  }
  return kernel;
}

static PyObject* attributes_of(const ep_node* node) {
  PyObject* attributes = PyDict_New();
  for (size_t i = 0; attributes && i < node->attribute_count; i++) {
    PyObject* value = attribute_value(&node->attributes[i]);
    if (!value || PyDict_SetItemString(attributes, node->attributes[i].name, value) < 0) {
      Py_CLEAR(attributes);
    }
    Py_XDECREF(value);
  }
  return attributes;
}

static PyObject* inputs_of(const ep_node* node) {
  PyObject* inputs = PyTuple_New((Py_ssize_t)node->input_count);
  for (size_t i = 0; inputs && i < node->input_count; i++) {
    PyTuple_SetItem(inputs, (Py_ssize_t)i, PyBool_FromLong(node->has_input[i]));
  }
  return inputs;
}

// `*reason` is null if the kernel takes the node. Returns -1 with an exception.
static int find_limit(PyObject* handle, const ep_node* node, char** reason) {
  PyObject* attributes = attributes_of(node);
  PyObject* inputs = attributes ? inputs_of(node) : NULL;
  PyObject* found =
      inputs ? PyObject_CallFunctionObjArgs(python_functions.limit_of, handle, attributes,
                                            inputs, NULL)
             : NULL;
  const char* text = found && found != Py_None ? PyUnicode_AsUTF8AndSize(found, NULL) : NULL;
  if (text) *reason = strdup(text);
  Py_XDECREF(attributes);
  Py_XDECREF(inputs);
  Py_XDECREF(found);
  return PyErr_Occurred() ? -1 : 0;
}

char* kernel_limit(void* handle, const ep_node* node, char** reason) {
  PyGILState_STATE state;
  if (enter_python(&state) < 0) return python_has_ended();
  char* error = find_limit(handle, node, reason) < 0 ? take_error(NULL) : NULL;
  PyGILState_Release(state);
  return error;
}

static python_kernel* make_kernel(PyObject* handle, const ep_node* node) {
  PyObject* attributes = attributes_of(node);
  PyObject* name = attributes ? PyUnicode_DecodeUTF8(node->name, (Py_ssize_t)strlen(node->name),
                                                     "backslashreplace")
                              : NULL;
  PyObject* made = name ? PyObject_CallFunction(python_functions.make_node, "OOOn", handle,
                                                name, attributes, (Py_ssize_t)node->output_count)
                        : NULL;
  Py_XDECREF(attributes);
  Py_XDECREF(name);
  PyObject *cell, *described;
  int checks_shapes;
  if (!made || !PyArg_ParseTuple(made, "O!Op", &PyList_Type, &cell, &described, &checks_shapes)) {
    Py_XDECREF(made);
    return NULL;
  }
  python_kernel* kernel = describe_outputs(node, checks_shapes);
  Py_INCREF(cell);
  Py_INCREF(described);
  kernel->cell = cell;
  kernel->node = described;
  Py_DECREF(made);
  return kernel;
}

char* kernel_create(void* handle, const ep_node* node, void** kernel) {
  PyGILState_STATE state;
  if (enter_python(&state) < 0) return python_has_ended();
  *kernel = make_kernel(handle, node);
  char* error = *kernel ? NULL : take_error(NULL);
  PyGILState_Release(state);
  return error;
}

void kernel_release(void* kernel) {
  PyGILState_STATE state;
  if (enter_python(&state) < 0) return;
  free_kernel(kernel);
  PyGILState_Release(state);
}
