// Kernels that ONNX Runtime requires of a provider with its own memory: copies and control flow.
#pragma once

#include "ep/runtime.h"

namespace epprof::ep {

struct Declaration;

Declaration copy_from_host();  // of MemcpyFromHost and MemcpyToHost
Declaration copy_to_host();
// The input of a copy, and its output with the same shape, which may be null. Throws.
struct CopiedTensors {
  const Value* source;
  Value* target;
};
CopiedTensors tensors_of_copy(KernelContext* context);

void add_copy_kernels(KernelRegistry*);       // of the host device; throws
void add_cuda_copy_kernels(KernelRegistry*, int device);  // throws

// `device`: -1 for the host device. Throws.
void add_control_flow_kernels(KernelRegistry*, int device);
LoopKernelHelper* cuda_loop_helper();
ScanKernelHelper* cuda_scan_helper();

}  // namespace epprof::ep
