// The log of an arena's memory while a recording is open: its memory at the begin, and each change
// since.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace epprof::ep {

enum MemoryAction : uint8_t { kAllocated, kFreed, kRegionAdded, kRegionReleased };

struct MemoryEvent {
  int64_t time;  // CLOCK_MONOTONIC, ns; kBefore: before the recording
  uint64_t address, bytes, requested, stream;
  uint64_t op;  // open on the thread; 0: none
  MemoryAction action;

  static constexpr int64_t kBefore = INT64_MIN;
};

// All logs begin anew, with at most `most` changes each.
void start_memory_logs(size_t most);
void stop_memory_logs();
bool memory_logs_are_on();

// Of one arena, whose lock its callers hold.
class MemoryLog {
 public:
  // Returns true once in each recording, before its first event: the arena then adds the memory
  // that it holds.
  bool begins();
  bool is_on() const { return is_on_; }
  void add_earlier(MemoryAction action, uint64_t address, uint64_t bytes, uint64_t stream);
  void add(MemoryAction action, uint64_t address, uint64_t bytes, uint64_t requested,
           uint64_t stream);
  const std::vector<MemoryEvent>& events() const { return events_; }
  uint64_t dropped() const { return dropped_; }

 private:
  std::vector<MemoryEvent> events_;
  uint64_t recording_ = 0, dropped_ = 0;
  size_t earlier_ = 0;
  bool is_on_ = false;
};

}  // namespace epprof::ep
