#include "ep/memory_log.h"

#include <atomic>

#include "core/clock.h"
#include "core/op_stack.h"

namespace epprof::ep {
namespace {

// The number of the recording, which changes at each start and stop: odd during one.
std::atomic<uint64_t> recording{0};
std::atomic<size_t> most_events{0};

bool is_open(uint64_t number) { return number % 2; }

}  // namespace

void start_memory_logs(size_t most) {
  stop_memory_logs();
  most_events.store(most, std::memory_order_relaxed);
  recording.fetch_add(1, std::memory_order_release);
}

void stop_memory_logs() {
  if (memory_logs_are_on()) recording.fetch_add(1, std::memory_order_release);
}

bool memory_logs_are_on() { return is_open(recording.load(std::memory_order_acquire)); }

bool MemoryLog::begins() {
  uint64_t now = recording.load(std::memory_order_acquire);
  if (now == recording_) return false;
  recording_ = now;
  dropped_ = earlier_ = 0;
  std::vector<MemoryEvent>().swap(events_);
  return is_on_ = is_open(now);
}

void MemoryLog::add_earlier(MemoryAction action, uint64_t address, uint64_t bytes,
                            uint64_t stream) {
  events_.push_back({MemoryEvent::kBefore, address, bytes, bytes, stream, 0, action});
  earlier_++;
}

void MemoryLog::add(MemoryAction action, uint64_t address, uint64_t bytes, uint64_t requested,
                    uint64_t stream) {
  if (!is_on_) return;
  if (events_.size() - earlier_ >= most_events.load(std::memory_order_relaxed)) {
    dropped_++;
    return;
  }
  events_.push_back({epprof_now_ns(), address, bytes, requested, stream, top_op(), action});
}

}  // namespace epprof::ep
