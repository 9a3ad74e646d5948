// A recorder's own stack of op ids on each thread, such as CUPTI's of external correlation ids. It
// holds the ids of the ops on the thread's op stack that have rows.
#pragma once

#include "core/threads.h"

namespace epprof {

// Functions that act on the calling thread's stack of ids. Null: the stacks stay as they are, and each
// is brought up to date by its thread's first change after the functions have been set again.
void mirror_ids(void (*push)(uint64_t op_id), void (*pop)());

// The op stack changes; the caller holds its lock. Where another thread than the stack's own changes
// it, the ids follow at the next change by the own thread, because they cannot be reached before.
void id_pushed(ThreadState* t, uint64_t op_id);  // the op is on the stack
void id_popped(ThreadState* t);                  // the op is no longer on the stack
void pop_ids(ThreadState* t, uint32_t from);     // before entries from index `from` on change
void push_ids(ThreadState* t, uint32_t from);    // and afterwards

}  // namespace epprof
