#include "ep/host/memory.h"

#include <string.h>

#include "ep/host/memory_pool.h"
#include "ort/status.h"

namespace epprof::ep {
namespace {

constexpr uint32_t kNoVendor = 0;
constexpr int32_t kDeviceId = 0;

struct HostAllocator : Allocator {
  const MemoryInfo* memory_info;
};

void* allocate(Allocator*, size_t bytes) { return pool_allocate(bytes); }
void release(Allocator*, void* block) { pool_free(block); }
const MemoryInfo* info(const Allocator* self) {
  return static_cast<const HostAllocator*>(self)->memory_info;
}

Status* get_stats(const Allocator*, KeyValuePairs** stats) {
  return as_status([&] {
    PoolStats now = pool_stats();
    *stats = as_pairs({now.in_use, now.most_in_use, now.reserved, now.largest, now.allocations,
                       now.extensions, now.shrinkages});
  });
}

// ONNX Runtime calls it at the end of a run with memory.enable_memory_arena_shrinkage.
Status* shrink(Allocator*) {
  return as_status([] { pool_shrink(); });
}

bool is_host(const MemoryDevice* device) { return rt.memory_device_type(device) == kCpuMemory; }
bool is_ours(const MemoryDevice* device) {
  return rt.memory_device_type(device) == kGpuMemory &&
         rt.memory_device_vendor(device) == kNoVendor;
}

bool can_copy(const DataTransfer*, const MemoryDevice* source, const MemoryDevice* target) {
  if (is_ours(source)) return is_ours(target) || is_host(target);
  return is_host(source) && is_ours(target);
}

Status* copy_tensors(DataTransfer*, const Value** sources, Value** targets, SyncStream**,
                     size_t count) {
  return as_status([&] {
    for (size_t i = 0; i < count; i++) copy_tensor(sources[i], targets[i]);
  });
}

void release_transfer(DataTransfer*) {}

DataTransfer transfer = {kApiVersion, release_transfer, can_copy, copy_tensors};

}  // namespace

const MemoryInfo* device_memory_info() {
  static MemoryInfo* memory_info = [] {
    MemoryInfo* created = nullptr;
    check(rt.create_memory_info("EpprofHost", kGpuMemory, kNoVendor, kDeviceId, kDefaultMemory, 0,
                                kDeviceAllocator, &created));
    return created;  // ONNX Runtime keeps a reference
  }();
  return memory_info;
}

KeyValuePairs* as_pairs(const AllocatorStatistics& now) {
  KeyValuePairs* pairs = nullptr;
  rt.create_pairs(&pairs);
  auto add = [&](const char* key, uint64_t value) {
    rt.add_pair(pairs, key, std::to_string(value).c_str());
  };
  add("InUse", now.in_use);
  add("MaxInUse", now.most_in_use);
  add("TotalAllocated", now.reserved);
  add("MaxAllocSize", now.largest);
  add("NumAllocs", now.allocations);
  add("NumReserves", 0);
  add("NumArenaExtensions", now.extensions);
  add("NumArenaShrinkages", now.shrinkages);
  add("Limit", now.limit);
  return pairs;
}

Allocator* make_allocator(const MemoryInfo* memory_info) {
  auto* allocator = new HostAllocator;
  static_cast<Allocator&>(*allocator) = {kApiVersion, allocate, release,   info,
                                        allocate,    get_stats, nullptr, shrink};
  allocator->memory_info = memory_info;
  return allocator;
}

void release_allocator(Allocator* allocator) { delete static_cast<HostAllocator*>(allocator); }

DataTransfer* make_data_transfer() { return &transfer; }

std::string out_of_memory(size_t bytes) {
  return "the host device has no memory left for a tensor of " + std::to_string(bytes) + " bytes";
}

size_t copy_tensor(const Value* source, Value* target) {
  const void* from = nullptr;
  void* to = nullptr;
  size_t bytes = 0;
  check(rt.tensor_bytes(source, &bytes));
  if (!bytes) return 0;
  check(rt.tensor_data(source, &from));
  check(rt.tensor_mutable_data(target, &to));
  if (!to) throw std::runtime_error(out_of_memory(bytes));
  if (from != to) memcpy(to, from, bytes);
  return bytes;
}

}  // namespace epprof::ep
