#include "cupti/callback_gate.h"

#include <time.h>

#include "core/clock.h"

namespace epprof {

bool CallbackGate::is_empty() const {
  bool inside = false;
  for_each_thread(
      [](ThreadState* t, void* found) { *static_cast<bool*>(found) |= t->in_callback.load(); },
      &inside);
  return !inside && without_thread_.load() == 0;
}

void CallbackGate::close(int64_t limit_ns) {
  open_.store(false);
  int64_t deadline = epprof_now_ns() + limit_ns;
  const struct timespec pause{0, 20000};
  while (!is_empty() && epprof_now_ns() < deadline) nanosleep(&pause, nullptr);
}

}  // namespace epprof
