// The buffers that CUPTI fills with raw activity records.
#pragma once

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace epprof {

// A bounded pool of equal buffers, whose bytes are zero. `configure` sets their size and number,
// which recording/cupti/buffer_limits.py decides; before it, there are none. The pool reserves its address
// space when the first one is requested.
//
// CUPTI writes records on the threads that launch, where a page fault takes as long as a launch on
// some virtual machines. So a buffer keeps its first pages, even if a flush returns it half empty.
class BufferPool {
 public:
  static constexpr size_t kKept = 1 << 20;  // bytes; the records of 3,000 launches

  void configure(size_t bytes, uint32_t buffers) {
    std::lock_guard<std::mutex> lock(mutex_);
    max_buffers_ = buffers;
    if (out_ > 0) return;
    if (base_ && (bytes != bytes_ || buffers > reserved_)) {
      munmap(base_, bytes_ * reserved_);
      base_ = nullptr;
      free_.clear();
    }
    bytes_ = bytes;
  }

  uint8_t* get() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!base_ && !reserve()) return nullptr;
    if (free_.empty() || out_ >= max_buffers_) return nullptr;
    uint8_t* buffer = free_.back();
    free_.pop_back();
    out_++;
    return buffer;
  }

  // Takes back a buffer whose first `used` bytes have been written. Ignores buffers of another
  // pool, which a forked child may get from its parent.
  void put(uint8_t* buffer, size_t used) {
    if (!base_ || buffer < base_ || buffer >= base_ + bytes_ * reserved_) return;
    static const size_t page = size_t(sysconf(_SC_PAGESIZE));
    size_t& present = present_of(buffer);
    size_t rest = std::max((used + page - 1) / page * page, std::min(present, kKept));
    present = rest = std::min(rest, bytes_);
    // CUPTI should not have written behind the used part, but does not promise it.
    memset(buffer, 0, rest);
    if (rest < bytes_) madvise(buffer + rest, bytes_ - rest, MADV_DONTNEED);
    std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(buffer);
    out_--;
  }

  // Returns the memory of the free buffers to the system, except the buffer with the most memory,
  // which is used next.
  void trim() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return;
    auto most = std::max_element(free_.begin(), free_.end(), [this](uint8_t* a, uint8_t* b) {
      return present_of(a) < present_of(b);
    });
    std::swap(*most, free_.back());
    for (size_t i = 0; i + 1 < free_.size(); i++) {
      madvise(free_[i], bytes_, MADV_DONTNEED);
      present_of(free_[i]) = 0;
    }
  }

  size_t bytes() const { return bytes_; }
  uint32_t out() const { return out_; }

 private:
  bool reserve() {
    void* space = mmap(nullptr, bytes_ * max_buffers_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) return false;
    base_ = static_cast<uint8_t*>(space);
    reserved_ = max_buffers_;
    present_.assign(reserved_, 0);
    free_.clear();
    for (uint32_t i = reserved_; i-- > 0;) free_.push_back(base_ + size_t(i) * bytes_);
    // If CUDA has started, the profiler's own flush makes the first request.
    memset(free_.back(), 0, present_of(free_.back()) = std::min(kKept, bytes_));
    return true;
  }

  size_t& present_of(uint8_t* buffer) { return present_[size_t(buffer - base_) / bytes_]; }

  std::mutex mutex_;
  std::vector<uint8_t*> free_;
  std::vector<size_t> present_;  // per buffer: bytes at its begin whose pages may be in memory
  uint8_t* base_ = nullptr;
  size_t bytes_ = 0;
  uint32_t max_buffers_ = 0, reserved_ = 0, out_ = 0;
};

}  // namespace epprof
