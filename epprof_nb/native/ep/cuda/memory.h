// ONNX Runtime's interface to the memory of CUDA devices: description, allocators, copies.
#pragma once

#include <string>

#include "ep/cuda/driver.h"
#include "ep/runtime.h"

namespace epprof::ep {

constexpr uint32_t kNvidia = 0x10DE;

// Described like the memory of ONNX Runtime's own CUDA provider, so that both providers share
// tensors without copies. Created once per device; throw.
const MemoryInfo* cuda_memory_info(int device);
const MemoryInfo* pinned_memory_info(int device);

Allocator* make_cuda_allocator(const MemoryInfo*);
void release_cuda_allocator(Allocator*);
DataTransfer* make_cuda_transfer();

int cuda_device_of(const Value*);  // -1: host memory

// Copies on a stream of `device`, which is current. Returns the bytes; throws.
size_t copy_tensor_on(int device, CudaStream, const Value* source, Value* target);
void copy_on(CudaStream, void* target, const void* source, size_t bytes);

// Frees the memory of an ended session for all streams, also of another provider. Waits for the
// device.
void reclaim_memory(int device) noexcept;

std::string out_of_device_memory(int device, size_t bytes);  // the message

// Takes the message of the last failed allocation, because ONNX Runtime reports only the failure.
std::string take_allocation_failure();

}  // namespace epprof::ep
