// ONNX Runtime's interface to the memory of the host device: description, allocators, copies.
#pragma once

#include <string>

#include "ep/runtime.h"

namespace epprof::ep {

// Described as memory of a GPU without a vendor. ONNX Runtime's Python functions then find it as
// device type "gpu" and separate host and device memory.
const MemoryInfo* device_memory_info();  // created once; throws

// Statistics under the keys of ONNX Runtime's own arenas.
struct AllocatorStatistics {
  uint64_t in_use, most_in_use, reserved, largest, allocations, extensions, shrinkages;
  uint64_t limit = 0;  // none
};
KeyValuePairs* as_pairs(const AllocatorStatistics&);

Allocator* make_allocator(const MemoryInfo*);
void release_allocator(Allocator*);
DataTransfer* make_data_transfer();
size_t copy_tensor(const Value* source, Value* target);  // returns the bytes; throws
std::string out_of_memory(size_t bytes);               // the message

}  // namespace epprof::ep
