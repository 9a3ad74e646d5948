// A recorder's stack of op ids on each thread, such as CUPTI's external correlation ids. It holds
// the ids of the ops with rows on the thread's op stack.
#pragma once

#include "core/thread_state.h"

namespace epprof {

// Sets the functions that act on the calling thread's stack of ids. Null: the stacks stay
// unchanged. Once the functions are set again, each stack is updated at its thread's next change.
void mirror_ids(void (*push)(uint64_t op_id), void (*pop)());

// To call when the op stack changes, with its lock held. If another thread changes the stack, the
// ids follow at the own thread's next change, because only that thread can reach them.
void id_pushed(ThreadState* t, uint64_t op_id);  // the op is on the stack
void id_popped(ThreadState* t);                  // the op is no longer on the stack
void pop_ids(ThreadState* t, uint32_t from);     // before entries from index `from` on change
void push_ids(ThreadState* t, uint32_t from);    // after the change

}  // namespace epprof
