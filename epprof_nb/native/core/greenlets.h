// The ops of greenlets. A thread's stack holds the ops of its current greenlet. The ops of other
// greenlets wait in separate stacks.
//
// The cell's greenlet, in which the recording began, waits for other greenlets as the cell's thread
// waits for other threads. Its ops are not suspended meanwhile. Its top op is the parent of ops
// that have no parent in their own greenlet.
#pragma once

#include "core/thread_state.h"

namespace epprof {

// The greenlet whose ops the calling thread's stack holds; 0: no greenlet was seen in this
// recording.
uint64_t greenlet_of_stack();
// Notes that the calling thread runs `current`, whose outermost parent is `root`. Returns whether a
// switch to it was not reported.
bool see_greenlet(uint64_t current, uint64_t root);
// Notes that the calling thread has switched between two greenlets. `ended`: `from` will not run
// again.
void switch_greenlet(uint64_t from, uint64_t to, bool ended);

// The caller of these functions holds the stack lock. Calls `each` with every op of waiting
// greenlets, as if it resumed at `now`.
void for_each_waiting(ThreadState* t, void (*each)(const Entry&, bool suspended, void*),
                      void* data);
// Ends a waiting op that `match` accepts. For ops that another greenlet ends.
bool close_waiting_where(ThreadState* t, bool (*match)(const Entry&, const void*),
                         const void* data);

template <typename Match>
bool close_waiting(ThreadState* t, const Match& match) {
  if (t->waiting.empty()) return false;
  return close_waiting_where(
      t, [](const Entry& e, const void* m) { return (*static_cast<const Match*>(m))(e); }, &match);
}

}  // namespace epprof
