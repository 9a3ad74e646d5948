// Kernels whose body is a Python function.
#pragma once

#include <string>

#include "ep/declaration.h"

namespace epprof::ep {

struct PythonKernel {
  Declaration declaration;
  void* handle;              // the interpreter's
  int device = -1;           // -1: the host device
  bool has_limits = false;   // does not take all nodes of its types and versions
  bool of_provider = false;  // false: an operator that runs on another provider
};

// Notes an attribute of an operator, because a kernel can read it only by name and type.
void note_attribute(const char* domain, const char* op_type, const char* name, int32_t type);

// `kernel`: a PythonKernel.
Status* create_python_kernel(void* kernel, const KernelInfo*, KernelImpl**);

}  // namespace epprof::ep
