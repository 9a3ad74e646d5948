#include "samples/memory_reader.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

namespace epprof {

namespace {

constexpr size_t kMaxRanges = 1024;  // IOV_MAX: of one call

}  // namespace

bool MemoryReader::prepare() {
  process_ = getpid();
  if (file_ >= 0) close(file_);  // the parent's, after a fork
  file_ = -1;
  if (works()) return true;
  file_ = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  return file_ >= 0 && works();
}

bool MemoryReader::works() const {
  volatile uint64_t known = 0x1234567890ABCDEF;
  uint64_t found = 0;
  bool reads = read(reinterpret_cast<uintptr_t>(&known), &found) && found == known;
  return reads && !read(uintptr_t(8), &found);  // the first page is never mapped
}

bool MemoryReader::read(const MemoryRange* ranges, size_t count, void* out) const {
  auto* to = static_cast<char*>(out);
  if (file_ >= 0) {
    for (size_t i = 0; i < count; i++) {
      ssize_t got = pread(file_, to, ranges[i].bytes, off_t(ranges[i].at));
      if (got != ssize_t(ranges[i].bytes)) return false;
      to += ranges[i].bytes;
    }
    return true;
  }
  while (count) {
    size_t some = std::min(count, kMaxRanges), bytes = 0;
    iovec remote[kMaxRanges];
    for (size_t i = 0; i < some; i++) {
      remote[i] = {reinterpret_cast<void*>(ranges[i].at), ranges[i].bytes};
      bytes += ranges[i].bytes;
    }
    iovec local{to, bytes};
    if (process_vm_readv(process_, &local, 1, remote, some, 0) != ssize_t(bytes)) return false;
    to += bytes;
    ranges += some;
    count -= some;
  }
  return true;
}

}  // namespace epprof
