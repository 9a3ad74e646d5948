// Kernels whose body is a Python function.
#pragma once

#include <map>
#include <string>

#include "ep/kernel_def.h"

namespace epprof::ep {

struct PythonKernel {
  Definition definition;
  void* handle;                               // the interpreter's
  std::map<std::string, int32_t> attributes;  // names and types, as seen in the model
};

Status* create_python_kernel(void* kernel, const KernelInfo*, KernelImpl**);

}  // namespace epprof::ep
