// ONNX Runtime's interface to the memory of the host device: description, allocators, copies.
#pragma once

#include <string>

#include "ep/runtime.h"

namespace epprof::ep {

// Described as memory of a GPU without a vendor. ONNX Runtime's Python functions then find it as
// device type "gpu" and separate host and device memory.
const MemoryInfo* device_memory_info();  // created once; throws

Allocator* make_allocator(const MemoryInfo*);
void release_allocator(Allocator*);
DataTransfer* make_data_transfer();
size_t copy_tensor(const Value* source, Value* target);  // returns the bytes; throws
std::string out_of_memory(size_t bytes);               // the message

}  // namespace epprof::ep
