#include "ort/allocator_statistics.h"

#include <memory>

#include "ort/runtime.h"
#include "ort/status.h"

namespace epprof::ort {

std::string allocator_statistics(const Session* session, const MemoryPlace& place) {
  if (!api.create_allocator) throw std::runtime_error("the observer is not registered");
  MemoryInfo* info = nullptr;
  check(api.create_memory_info(place.name, place.device_type, place.vendor, place.device,
                               kDefaultMemory, 0, kDeviceAllocator, &info));
  std::unique_ptr<MemoryInfo, void (*)(MemoryInfo*)> owned_info(info, api.release_memory_info);
  Allocator* allocator = nullptr;
  check(api.create_allocator(session, info, &allocator));
  std::unique_ptr<Allocator, void (*)(Allocator*)> owned(allocator, api.release_allocator);
  KeyValuePairs* pairs = nullptr;
  check(api.allocator_statistics(allocator, &pairs));
  std::unique_ptr<KeyValuePairs, void (*)(KeyValuePairs*)> owned_pairs(pairs, api.release_pairs);
  const char *const *keys = nullptr, *const *values = nullptr;
  size_t count = 0;
  api.pairs(pairs, &keys, &values, &count);
  std::string lines;
  for (size_t i = 0; i < count; i++) {
    lines += std::string(keys[i]) + "=" + values[i] + "\n";
  }
  return lines;
}

}  // namespace epprof::ort
