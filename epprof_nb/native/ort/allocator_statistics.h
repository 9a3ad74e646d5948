// Statistics of the allocators of sessions, such as the arenas of the CUDA provider.
#pragma once

#include <string>

#include "ort/abi.h"

namespace epprof::ort {

// Memory of a kind of device, as the provider of a session names it.
struct MemoryPlace {
  const char* name;
  int32_t device_type;
  uint32_t vendor;
  int32_t device;
};

// A line "name=value" for each statistic of the session's allocator there. Throws ONNX Runtime's
// error, for example if the session has no such allocator.
std::string allocator_statistics(const Session*, const MemoryPlace&);

}  // namespace epprof::ort
