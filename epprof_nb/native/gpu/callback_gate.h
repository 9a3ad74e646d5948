// CUPTI calls back on any thread, also while another one ends the session. The gate lets callbacks
// through during a session, and its end waits for those that are running.
#pragma once

#include <atomic>

#include "core/threads.h"

namespace epprof {

class CallbackGate {
 public:
  void open() { open_.store(true); }

  // Afterwards no callback passes. Waits for those that have passed, at most for `limit_ns`: what a
  // callback reads is never freed, so that one whose thread is suspended does no harm.
  void close(int64_t limit_ns);

  // One callback on its way through. A thread that ends has no state any more: `t` is null.
  class Passage {
   public:
    // Either the callback sees that the gate is closed, or `close` sees the callback: both orders
    // of the two stores and loads are sequentially consistent.
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
