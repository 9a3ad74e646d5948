#include "ep/cuda/memory.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "ep/cuda/arena.h"
#include "ep/cuda/graph.h"
#include "ep/cuda/pinned_pool.h"
#include "ep/host/memory.h"
#include "ort/status.h"

namespace epprof::ep {
namespace {

struct CudaAllocator : Allocator {
  const MemoryInfo* memory_info;
  int device;
};

const CudaAllocator& of(const Allocator* self) { return *static_cast<const CudaAllocator*>(self); }

std::mutex& failure_mutex = *new std::mutex;
std::string& failure = *new std::string;

void note_failure(const std::string& message) {
  std::lock_guard lock(failure_mutex);
  failure = message;
}

// For ONNX Runtime, null means no memory, and exceptions are not allowed.
template <typename Allocate>
void* or_null(int device, size_t bytes, Allocate allocate) noexcept {
  try {
    void* memory = allocate();
    if (!memory) note_failure(out_of_device_memory(device, bytes));
    return memory;
  } catch (const std::exception& error) {
    note_failure(error.what());
    return nullptr;
  }
}

void* allocate(Allocator* self, size_t bytes) {
  int device = of(self).device;
  return or_null(device, bytes, [&] { return arena_of(device).allocate(bytes, nullptr); });
}
void* allocate_on_stream(Allocator* self, size_t bytes, SyncStream* stream) {
  auto handle = stream ? static_cast<CudaStream>(rt.stream_handle(stream)) : nullptr;
  int device = of(self).device;
  return or_null(device, bytes, [&] { return arena_of(device).allocate(bytes, handle); });
}
void release(Allocator* self, void* block) { arena_of(of(self).device).free(block); }
const MemoryInfo* info(const Allocator* self) { return of(self).memory_info; }

Status* get_stats(const Allocator* self, KeyValuePairs** stats) {
  return as_status([&] {
    ArenaStats now = arena_of(of(self).device).stats();
    *stats = as_pairs({now.in_use, now.most_in_use, now.reserved, now.largest, now.allocations,
                       now.regions_allocated, now.shrinkages, now.limit});
  });
}

Status* shrink(Allocator* self) {
  return as_status([&] { arena_of(of(self).device).shrink(); });
}

void* allocate_pinned(Allocator* self, size_t bytes) {
  int device = of(self).device;
  return or_null(device, bytes, [&] { return pinned_allocate(device, bytes); });
}
Status* get_pinned_stats(const Allocator*, KeyValuePairs** stats) {
  return as_status([&] {
    PinnedStats now = pinned_stats();
    *stats = as_pairs({now.in_use, now.most_in_use, now.reserved, now.largest, now.allocations,
                       now.extensions, 0});
  });
}
void release_pinned(Allocator*, void* block) { pinned_free(block); }

bool is_cuda(const MemoryDevice* device) {
  return rt.memory_device_type(device) == kGpuMemory &&
         rt.memory_device_vendor(device) == kNvidia &&
         rt.memory_device_memory_type(device) == kDefaultMemory;
}
bool is_host(const MemoryDevice* device) {
  return rt.memory_device_type(device) == kCpuMemory ||
         rt.memory_device_memory_type(device) == kHostAccessible;
}

bool can_copy(const DataTransfer*, const MemoryDevice* source, const MemoryDevice* target) {
  if (is_cuda(source)) return is_cuda(target) || is_host(target);
  return is_host(source) && is_cuda(target);
}

// Results in host memory are constants of a graph, so the graph does not write their copies.
void copy_during_capture(int device, const Value* source, Value* target) {
  if (cuda_device_of(target) < 0 || cuda_device_of(source) >= 0) {
    throw std::runtime_error("a run that is captured into a graph cannot copy its results");
  }
  DuringCaptures relaxed;  // a copy from pageable memory waits, and would end the capture
  CudaStream stream = stream_of_thread(device);
  copy_tensor_on(device, stream, source, target);
  check_cuda("cuStreamSynchronize", cuda.StreamSynchronize(stream));
}

Status* copy_tensors(DataTransfer*, const Value** sources, Value** targets, SyncStream** streams,
                     size_t count) {
  return as_status([&] {
    for (size_t i = 0; i < count; i++) {
      int device = std::max(cuda_device_of(sources[i]), cuda_device_of(targets[i]));
      CurrentDevice current(device);
      SyncStream* stream = streams ? streams[i] : nullptr;
      if (stream) {
        auto handle = static_cast<CudaStream>(rt.stream_handle(stream));
        if (is_capturing(handle)) {
          copy_during_capture(device, sources[i], targets[i]);
          continue;
        }
        arena_of(device).use_stream(handle);
        copy_tensor_on(device, handle, sources[i], targets[i]);
        continue;
      }
      // On the default stream, which waits for the user's launches there.
      copy_tensor_on(device, nullptr, sources[i], targets[i]);
      check_cuda("cuStreamSynchronize", cuda.StreamSynchronize(nullptr));
    }
  });
}

void release_transfer(DataTransfer*) {}

DataTransfer transfer = {kApiVersion, release_transfer, can_copy, copy_tensors};

const MemoryInfo* memory_info_of(const char* name, int device, int32_t type) {
  static auto& infos = *new std::map<std::pair<int, int32_t>, MemoryInfo*>;
  static auto& mutex = *new std::mutex;
  std::lock_guard lock(mutex);
  MemoryInfo*& made = infos[{device, type}];  // ONNX Runtime keeps a reference
  if (!made) {
    check(rt.create_memory_info(name, kGpuMemory, kNvidia, device, type, 0, kDeviceAllocator,
                                &made));
  }
  return made;
}

}  // namespace

const MemoryInfo* cuda_memory_info(int device) {
  return memory_info_of("Cuda", device, kDefaultMemory);
}
const MemoryInfo* pinned_memory_info(int device) {
  return memory_info_of("CudaPinned", device, kHostAccessible);
}

Allocator* make_cuda_allocator(const MemoryInfo* memory_info) {
  const MemoryDevice* device = rt.memory_device(memory_info);
  auto* allocator = new CudaAllocator;
  allocator->memory_info = memory_info;
  allocator->device = int(rt.memory_device_id(device));
  if (rt.memory_device_memory_type(device) == kHostAccessible) {
    static_cast<Allocator&>(*allocator) = {kApiVersion,     allocate_pinned, release_pinned, info,
                                           allocate_pinned, get_pinned_stats, nullptr, nullptr};
  } else {
    static_cast<Allocator&>(*allocator) = {
        kApiVersion, allocate, release, info, allocate, get_stats, allocate_on_stream, shrink};
  }
  return allocator;
}

void release_cuda_allocator(Allocator* allocator) {
  delete static_cast<CudaAllocator*>(allocator);
}

DataTransfer* make_cuda_transfer() { return &transfer; }

int cuda_device_of(const Value* value) {
  const MemoryDevice* device = rt.value_memory_device(value);
  return device && is_cuda(device) ? int(rt.memory_device_id(device)) : -1;
}

void reclaim_memory(int device) noexcept {
  consume_status(as_status([&] { arena_of(device).reclaim_all(); }));
}

std::string out_of_device_memory(int device, size_t bytes) {
  ArenaStats stats = arena_of(device).stats();
  std::string message = "cuda:" + std::to_string(device) + " has no memory left for a tensor of " +
                        std::to_string(bytes) + " bytes; tensors use " +
                        std::to_string(stats.in_use) + " bytes";
  if (stats.limit) message += " (gpu_mem_limit=" + std::to_string(stats.limit) + ")";
  size_t free = 0, total = 0;
  try {
    CurrentDevice current(device);
    if (cuda.MemGetInfo(&free, &total) == kSuccess) {
      message += ", and " + std::to_string(free) + " of the device's " + std::to_string(total) +
                 " bytes are free";
    }
  } catch (const std::exception&) {  // the context is lost; the sizes are unknown
  }
  return message;
}

std::string take_allocation_failure() {
  std::lock_guard lock(failure_mutex);
  return std::move(failure);
}

void copy_on(CudaStream stream, void* target, const void* source, size_t bytes) {
  check_cuda("cuMemcpyAsync", cuda.MemcpyAsync(reinterpret_cast<uint64_t>(target),
                                               reinterpret_cast<uint64_t>(source), bytes, stream));
}

size_t copy_tensor_on(int device, CudaStream stream, const Value* source, Value* target) {
  const void* from = nullptr;
  void* to = nullptr;
  size_t bytes = 0;
  check(rt.tensor_bytes(source, &bytes));
  if (!bytes) return 0;
  check(rt.tensor_data(source, &from));
  check(rt.tensor_mutable_data(target, &to));
  int target_device = cuda_device_of(target);
  if (!to && target_device >= 0) {
    throw std::runtime_error(out_of_device_memory(target_device, bytes));
  }
  if (!to) throw std::runtime_error("there is no host memory for " + std::to_string(bytes) + " bytes");
  if (from == to) return bytes;
  copy_on(stream, to, from, bytes);
  if (cuda_device_of(source) < 0) pinned_in_use(from, device, stream);
  if (target_device < 0) pinned_in_use(to, device, stream);
  return bytes;
}

}  // namespace epprof::ep
