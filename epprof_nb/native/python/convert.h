// Between Python's objects and the core's values, for the files that wrap the core.
#pragma once

#include "python/op_object.h"

#include "core/api.h"

#define KEYWORDS(function) (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

PyObject* raise_message(char* message);  // frees it; RuntimeError
int to_key(PyObject* value, uint32_t* key);
int to_u64(PyObject* value, uint64_t* number);
PyObject* to_dict(ep_columns* columns);  // frees them
PyObject* with_count(PyObject* dict, const char* key, uint64_t count);
