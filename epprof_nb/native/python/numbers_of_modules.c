#include "python/numbers_of_modules.h"

// By the addresses of the modules: a lookup in dictionaries takes as long as the rest of the record.
enum { CALLED = 1024 };
static Called called[CALLED];
static uint64_t generation = 1;

static Called* called_at(const PyObject* module) {
  uintptr_t address = (uintptr_t)module;
  return &called[(address >> 4 ^ address >> 14) % CALLED];
}

Called* find_called(Recorded* self, PyObject* module) {
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

int64_t number_of(Recorded* self, PyObject* module) {
  Called* found = find_called(self, module);
  if (found) return found->number;
  int64_t number = look_up(self, module);
  if (number < 0) return number;
  *called_at(module) = (Called){self, module, Py_TYPE(module), generation, number, 1};
  return number;
}

void forget_numbers(void) { generation++; }
