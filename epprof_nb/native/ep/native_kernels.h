// Kernels that ONNX Runtime requires of a provider with memory of its own: copies and control flow.
#pragma once

#include "ep/runtime.h"

namespace epprof::ep {

void add_copy_kernels(KernelRegistry*);          // throws
void add_control_flow_kernels(KernelRegistry*);  // throws

}  // namespace epprof::ep
