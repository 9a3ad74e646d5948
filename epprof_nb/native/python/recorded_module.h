// The type `RecordedModule` of _native.
#pragma once

#include "python/op_object.h"

#include <structmember.h>

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

int recorded_module_type_create(PyObject* module);
