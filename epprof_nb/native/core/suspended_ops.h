// Ops of a generator or coroutine that is suspended: off every thread's stack until it resumes.
#pragma once

#include "core/threads.h"

namespace epprof {

void suspend_frame(uint64_t frame);
void resume_frame(uint64_t frame);
void forget_frame(uint64_t frame);
void clear_suspended();
// Copies of the ops suspended now, for the drain.
void for_each_suspended(void (*each)(const Entry&, void*), void* data);

// Ends a suspended op that `match` accepts (its end came from outside its frame).
bool close_suspended_where(ThreadState* t, bool (*match)(const Entry&, const void*),
                           const void* data);

template <typename Match>
bool close_suspended(ThreadState* t, const Match& match) {
  return close_suspended_where(
      t, [](const Entry& e, const void* m) { return (*static_cast<const Match*>(m))(e); }, &match);
}

}  // namespace epprof
