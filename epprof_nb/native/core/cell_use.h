// Whether the cell's thread waits for another thread, as that one sees it at its launches. A waiting
// thread uses no CPU time between them, and its op stack does not change.
#pragma once

#include <cstdint>

namespace epprof {

class CellUse {
 public:
  enum Finding { unknown, waits, runs };

  // At a launch: the cell's thread, the number of changes of its stack, and its CPU time (negative:
  // the thread has ended).
  Finding at_launch(uint64_t tid, uint64_t stack_changes, int64_t cpu_ns, int64_t now) {
    bool is_same = tid == tid_ && stack_changes == stack_changes_ && cpu_ns >= 0;
    if (is_same) {
      int64_t used = cpu_ns - cpu_ns_;
      bool is_idle = used * kIdle <= now - since_;
      // It may only be about to fall asleep: a longer time, up to the next launches, will tell.
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
  // As in recording/session/cell_log.py.
  static constexpr int64_t kIdle = 8, kFallingAsleepNs = 50000;

  uint64_t tid_ = 0;
  uint64_t stack_changes_ = 0;
  int64_t cpu_ns_ = 0;
  int64_t since_ = 0;
};

}  // namespace epprof
