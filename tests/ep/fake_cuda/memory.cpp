// Memory and copies.
#include <string.h>
#include <sys/mman.h>

#include "state.h"

using namespace fake;

namespace {

// Whether a copy stays within an allocation, or is in host memory.
bool is_inside(const char* name, uintptr_t address, size_t bytes, int* device) {
  Allocation* found = allocation_at(address);
  *device = found ? found->device : -1;
  if (!found) {
    // Freed device memory is unmapped; a host address is readable.
    unsigned char resident = 0;
    if (mincore(reinterpret_cast<void*>(address / kPage * kPage), 1, &resident)) {
      misuse(std::string(name) + " uses memory that was freed");
      return false;
    }
    return true;
  }
  if (address + bytes <= found->begin + found->bytes) return true;
  misuse(std::string(name) + " goes beyond the end of an allocation");
  return false;
}

void copy_now(uintptr_t target, uintptr_t source, size_t width, size_t height, size_t target_pitch,
              size_t source_pitch) {
  set_open(target, true);
  set_open(source, true);
  for (size_t i = 0; i < height; i++) {
    memmove(reinterpret_cast<char*>(target) + i * target_pitch,
            reinterpret_cast<char*>(source) + i * source_pitch, width);
  }
  set_open(source, false);
  set_open(target, false);
}

bool is_pinned_or_device(uintptr_t address) { return allocation_at(address); }

int copy(const char* name, uintptr_t target, uintptr_t source, size_t width, size_t height,
         size_t target_pitch, size_t source_pitch, Stream* given) {
  std::unique_lock lock(mutex);
  Stream* stream = nullptr;
  if (int failed = usable(name, given, &stream)) return failed;
  int target_device, source_device;
  if (!is_inside(name, target, (height - 1) * target_pitch + width, &target_device) ||
      !is_inside(name, source, (height - 1) * source_pitch + width, &source_device)) {
    sticky = kIllegalAddress;
    return kIllegalAddress;
  }
  if (target_device < 0 && source_device < 0) misuse(std::string(name) + " within the host");
  if (stream->capturing) return 0;
  if (stream->capture) {  // a replay copies from the same address
    if (!is_pinned_or_device(source) || !is_pinned_or_device(target)) {
      stream->capture->invalid = true;
      return kCaptureUnsupported;
    }
    stream->add([=] { copy_now(target, source, width, height, target_pitch, source_pitch); });
    return 0;
  }
  bool from_pageable = !is_pinned_or_device(source), to_pageable = !is_pinned_or_device(target);
  if (from_pageable) {
    // Staged: the caller may reuse the source at once.
    auto staged = std::make_shared<std::vector<char>>((height - 1) * source_pitch + width);
    memcpy(staged->data(), reinterpret_cast<void*>(source), staged->size());
    stream->add([=] {
      copy_now(target, reinterpret_cast<uintptr_t>(staged->data()), width, height, target_pitch,
               source_pitch);
    });
    return 0;
  }
  stream->add([=] { copy_now(target, source, width, height, target_pitch, source_pitch); });
  if (to_pageable) changed.wait(lock, [&] { return !stream->pending; });
  return 0;
}

}  // namespace

extern "C" {

int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  std::unique_lock lock(mutex);
  if (int failed = unsafe("cuMemAlloc")) return failed;
  while (allocations_wait) {
    lock.unlock();
    usleep(1000);
    lock.lock();
  }
  if (current.empty()) return kInvalidContext;
  int device = current.back()->device;
  if (!bytes) return kInvalidValue;
  if (used_bytes[device] + bytes > total_bytes[device]) return kNoMemory;
  size_t mapped = (bytes + kPage - 1) / kPage * kPage;
  void* memory = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return kNoMemory;
  auto begin = reinterpret_cast<uintptr_t>(memory);
  allocations[begin] = {begin, bytes, mapped, device};
  used_bytes[device] += bytes;
  *address = begin;
  return 0;
}
int cuMemFree_v2(uint64_t address) {
  std::unique_lock lock(mutex);
  if (int failed = unsafe("cuMemFree")) return failed;
  auto found = allocations.find(address);
  if (found == allocations.end() || found->second.device < 0) {
    misuse("cuMemFree of memory that was not allocated, or was freed");
    return kInvalidValue;
  }
  // Freeing waits for the device, as the real driver does.
  wait_for(contexts[found->second.device], lock);
  used_bytes[found->second.device] -= found->second.bytes;
  // The addresses stay reserved, so that a use after this is seen.
  mprotect(reinterpret_cast<void*>(found->second.begin), found->second.mapped, PROT_NONE);
  munmap(reinterpret_cast<void*>(found->second.begin), found->second.mapped);
  allocations.erase(found);
  return 0;
}
int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  std::lock_guard lock(mutex);
  if (int failed = unsafe("cuMemHostAlloc")) return failed;
  size_t mapped = (bytes + kPage - 1) / kPage * kPage;
  void* made = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return kNoMemory;
  auto begin = reinterpret_cast<uintptr_t>(made);
  allocations[begin] = {begin, bytes, mapped, -1};
  *memory = made;
  return 0;
}
int cuMemFreeHost(void* memory) {
  std::lock_guard lock(mutex);
  if (int failed = unsafe("cuMemFreeHost")) return failed;
  auto found = allocations.find(reinterpret_cast<uintptr_t>(memory));
  if (found == allocations.end() || found->second.device >= 0) {
    misuse("cuMemFreeHost of memory that was not allocated, or was freed");
    return kInvalidValue;
  }
  munmap(memory, found->second.mapped);
  allocations.erase(found);
  return 0;
}

int cuPointerGetAttribute(void* value, int attribute, uint64_t pointer) {
  constexpr int kMemoryType = 2, kDeviceOrdinal = 9;
  std::lock_guard lock(mutex);
  if (int failed = enter("cuPointerGetAttribute")) return failed;
  Allocation* found = allocation_at(pointer);
  if (!found) return kInvalidValue;  // the driver knows what it allocated
  int type = found->device < 0 ? 1 : 2;
  if (attribute != kMemoryType && attribute != kDeviceOrdinal) return kInvalidValue;
  *static_cast<int*>(value) = attribute == kMemoryType ? type : found->device;
  return 0;
}

int cuMemcpyAsync(uint64_t target, uint64_t source, size_t bytes, Stream* stream) {
  {
    std::lock_guard lock(mutex);
    bool pageable = !allocation_at(target) || !allocation_at(source);
    if (int failed = bytes && pageable ? unsafe("pageable memory") : 0) return failed;
  }
  return bytes ? copy("cuMemcpyAsync", target, source, bytes, 1, bytes, bytes, stream) : 0;
}

struct Copy2D {
  size_t source_x, source_y;
  uint32_t source_type;
  const void* source_host;
  uint64_t source_device;
  void* source_array;
  size_t source_pitch, target_x, target_y;
  uint32_t target_type;
  void* target_host;
  uint64_t target_device;
  void* target_array;
  size_t target_pitch, width, height;
};
int cuMemcpy2DAsync_v2(const Copy2D* c, Stream* stream) {
  if (c->source_type != 2 || c->target_type != 2 || c->source_x || c->source_y || c->target_x ||
      c->target_y || c->width > c->source_pitch || c->width > c->target_pitch) {
    return kInvalidValue;
  }
  return copy("cuMemcpy2DAsync", c->target_device, c->source_device, c->width, c->height,
              c->target_pitch, c->source_pitch, stream);
}

}  // extern "C"
