// CUPTI calls back on any thread, also while another thread ends the session. The gate lets
// callbacks through during a session. Closing it waits for running callbacks.
#pragma once

#include <atomic>

#include "core/thread_state.h"

namespace epprof {

class CallbackGate {
 public:
  void open() { open_.store(true); }

  // Stops callbacks, and waits at most `limit_ns` for those that have passed. A callback on a
  // suspended thread does no harm, because the data that callbacks read is never freed.
  void close(int64_t limit_ns);

  // One callback that passes the gate. `t` is null on a thread that is ending, which has no state.
  class Passage {
   public:
    // Either the callback sees that the gate is closed, or `close` sees the callback, because the
    // stores and loads of both are sequentially consistent.
    Passage(CallbackGate& gate, ThreadState* t)
        : gate_(gate), t_(t), was_inside_(t && t->in_callback.exchange(true)) {
      if (!t) gate.without_thread_++;
      passed_ = gate.open_.load();
    }
    ~Passage() {
      if (t_) {
        t_->in_callback.store(was_inside_, std::memory_order_release);
      } else {
        gate_.without_thread_--;
      }
    }
    Passage(const Passage&) = delete;
    Passage& operator=(const Passage&) = delete;

    explicit operator bool() const { return passed_; }

   private:
    CallbackGate& gate_;
    ThreadState* t_;
    bool was_inside_, passed_;
  };

 private:
  bool is_empty() const;

  std::atomic<bool> open_{false};
  std::atomic<int> without_thread_{0};
};

}  // namespace epprof
