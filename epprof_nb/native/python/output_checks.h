// Checks of the outputs that a Python kernel requests against the model. All return -1 with an
// exception.
#pragma once

#include "python/kernel_context.h"

enum { kMaxRank = 32 };

int parse_shape(PyObject* shape, int64_t* dims, size_t* rank);  // `dims`: room for kMaxRank
int check_shape(const expected_output* output, const int64_t* dims, size_t rank, size_t index);
int check_dtype(const expected_output* output, PyObject* array, PyObject* dtype, size_t index);
int output_checks_create(void);
