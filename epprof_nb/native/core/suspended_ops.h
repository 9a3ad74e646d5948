// Ops of suspended generators and coroutines. They are on no stack until their frame resumes.
#pragma once

#include "core/thread_state.h"

namespace epprof {

void suspend_frame(uint64_t frame);
void resume_frame(uint64_t frame);
void frame_finished(uint64_t frame);  // ends the ops of a frame that will not resume
bool is_suspended(uint64_t frame);
size_t suspended_frames();  // their number; reads no lock
void clear_suspended();
// Calls `each` with every suspended op and the id of the thread on which it was suspended.
void for_each_suspended(void (*each)(const Entry&, uint64_t tid, void*), void* data);

// Ends a suspended op that `match` accepts. For ops that code outside their frame ends.
bool close_suspended_where(ThreadState* t, bool (*match)(const Entry&, const void*),
                           const void* data);

template <typename Match>
bool close_suspended(ThreadState* t, const Match& match) {
  return close_suspended_where(
      t, [](const Entry& e, const void* m) { return (*static_cast<const Match*>(m))(e); }, &match);
}

}  // namespace epprof
