// Whether the cell's thread waits for another thread, checked at the launches of the other thread.
// Between them, a waiting thread uses no CPU time, and its op stack does not change.
#pragma once

#include <cstdint>

namespace epprof {

class CellThreadWait {
 public:
  enum Finding { unknown, waits, runs };

  // To call at a launch, with the cell's thread, the number of changes of its stack, and its CPU
  // time (negative: the thread has ended).
  Finding at_launch(uint64_t tid, uint64_t stack_changes, int64_t cpu_ns, int64_t now) {
    bool is_same = tid == tid_ && stack_changes == stack_changes_ && cpu_ns >= 0;
    if (is_same) {
      int64_t used = cpu_ns - cpu_ns_;
      bool is_idle = used * kIdle <= now - since_;
      // The thread may be about to fall asleep. A longer interval, up to the next launches,
      // decides.
      if (!is_idle && used <= kFallingAsleepNs) return unknown;
      cpu_ns_ = cpu_ns;
      since_ = now;
      return is_idle ? waits : runs;
    }
    tid_ = tid;
    stack_changes_ = stack_changes;
    cpu_ns_ = cpu_ns;
    since_ = now;
    return unknown;
  }

 private:
  // As in recording/session/cell_thread_without_callbacks.py.
  static constexpr int64_t kIdle = 8, kFallingAsleepNs = 50000;

  uint64_t tid_ = 0;
  uint64_t stack_changes_ = 0;
  int64_t cpu_ns_ = 0;
  int64_t since_ = 0;
};

}  // namespace epprof
