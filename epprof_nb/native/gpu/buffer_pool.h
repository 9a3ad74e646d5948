// The buffers that CUPTI fills with raw activity records.
#pragma once

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace epprof {

// A bounded pool of equal buffers, whose bytes are zero. `configure` sets their size and number,
// which recording/cupti/recorder.py chooses; before it, there are none. The pool reserves its
// address space when the first one is requested.
class BufferPool {
 public:
  void configure(size_t bytes, uint32_t buffers) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (out_ == 0 && (bytes != bytes_ || !base_)) {
      if (base_) munmap(base_, bytes_ * reserved_);
      base_ = nullptr;
      bytes_ = bytes;
    }
    max_buffers_ = buffers;
    if (base_ && max_buffers_ > reserved_ && out_ == 0) {
      munmap(base_, bytes_ * reserved_);
      base_ = nullptr;
    }
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

  // Takes back a buffer whose first `used` bytes have been written.
  void put(uint8_t* buffer, size_t used) {
    static const size_t page = size_t(sysconf(_SC_PAGESIZE));
    size_t rest = (used + page - 1) / page * page;
    // Nothing should have been written behind the used part, but nobody promises that.
    memset(buffer, 0, rest < bytes_ ? rest : bytes_);
    if (rest < bytes_) madvise(buffer + rest, bytes_ - rest, MADV_DONTNEED);
    std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(buffer);
    out_--;
  }

  // Returns the memory of the free buffers but one to the system.
  void trim() {
    std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i + 1 < free_.size(); i++) madvise(free_[i], bytes_, MADV_DONTNEED);
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
    free_.clear();
    for (uint32_t i = reserved_; i-- > 0;) free_.push_back(base_ + size_t(i) * bytes_);
    return true;
  }

  std::mutex mutex_;
  std::vector<uint8_t*> free_;
  uint8_t* base_ = nullptr;
  size_t bytes_ = 0;
  uint32_t max_buffers_ = 0, reserved_ = 0, out_ = 0;
};

}  // namespace epprof
