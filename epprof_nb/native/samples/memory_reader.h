// Reads memory of this process that other threads may free or unmap at any time. A read fails where
// a load would end the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace epprof {

struct MemoryRange {
  uintptr_t at;
  size_t bytes;
};

// A value among bytes that were read.
template <typename T>
T at_offset(const char* bytes, size_t offset) {
  T value;
  memcpy(&value, bytes + offset, sizeof value);
  return value;
}

class MemoryReader {
 public:
  // Finds a way to read. Returns false if the system refuses all of them, as some containers do.
  bool prepare();

  // Reads the ranges one after another into `out`. Returns false if any of them is not mapped.
  bool read(const MemoryRange* ranges, size_t count, void* out) const;

  bool read(uintptr_t at, void* out, size_t bytes) const {
    MemoryRange range{at, bytes};
    return read(&range, 1, out);
  }

  template <typename T>
  bool read(uintptr_t at, T* out) const {
    return read(at, out, sizeof *out);
  }

 private:
  bool works() const;

  int process_ = 0;
  int file_ = -1;  // /proc/self/mem, where process_vm_readv is refused
};

}  // namespace epprof
