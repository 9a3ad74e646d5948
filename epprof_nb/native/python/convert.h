// Conversions between Python objects and the core's values, for the files that wrap the core.
#pragma once

#include "python/op_object.h"

#include "core/api.h"

#define KEYWORDS(function) (PyCFunction)(void (*)(void))function, METH_VARARGS | METH_KEYWORDS

PyObject* raise_message(char* message);  // raises RuntimeError; frees the message
// The text as UTF-8, a bytes object. Lone surrogates have no UTF-8 form and are escaped.
PyObject* to_utf8(PyObject* text);
int to_u32(PyObject* value, uint32_t* number);
int to_u64(PyObject* value, uint64_t* number);
PyObject* columns_to_dict(epprof_columns* columns);  // name -> memoryview of bytes; frees the columns
PyObject* add_count(PyObject* dict, const char* key, uint64_t count);
