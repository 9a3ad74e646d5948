// The number of a module, which stands for its path in the names of ops.
#pragma once

#include "python/recorded_module.h"

// A module that was called last. Entries of an earlier generation are void.
typedef struct {
  Recorded* recorded;
  PyObject* module;
  PyTypeObject* type;  // `module.__class__ = ...` is allowed
  uint64_t generation;
  int64_t number;
  int takes_cache;  // whether the class may take a KV cache
} Called;

Called* find_called(Recorded* self, PyObject* module);  // NULL if it is not known any more
int64_t number_of(Recorded* self, PyObject* module);  // -1 if its calls are not ops, -2 on failure
void forget_numbers(void);
