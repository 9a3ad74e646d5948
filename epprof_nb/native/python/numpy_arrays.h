// NumPy arrays over external memory, by NumPy's C API table. Its slots are stable since NumPy 1.
#pragma once

#include "python/convert.h"

#include "ep/api.h"

int numpy_load(void);  // 0, or -1 with an exception
int numpy_type_of(int32_t onnx_type);  // NumPy's type number; -1: none
int numpy_add_type(int32_t onnx_type, int type);  // a dtype of ml_dtypes; -1: it is not
// An array over the tensor's memory. The caller must ensure that it does not outlive the memory.
PyObject* numpy_view(const ep_tensor* tensor, int writable);
PyObject* numpy_copy(const ep_tensor* tensor);
