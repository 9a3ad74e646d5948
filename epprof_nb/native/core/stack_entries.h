// The entries of each thread's op stack: opening, closing and moving them, and their ids.
#pragma once

#include "core/thread_state.h"

namespace epprof {

extern std::atomic<bool> recording_ops;
extern std::atomic<bool> recording_statements;  // if ops are recorded

// Updates a thread's stack to the code that the thread executes. If set, the thread calls it before
// it uses its stack or makes an API call.
extern std::atomic<void (*)(ThreadState*)> update_stack;

// The calling thread's state, with its stack reset for this recording. Null if not recording.
ThreadState* stack_thread();
void renew_stack(ThreadState* t);  // resets it if it belongs to an earlier recording
void clear_stack(ThreadState* t, uint64_t new_epoch);  // also frees its memory

uint64_t new_op_id(ThreadState* t);
uint64_t reserve_op_ids(uint64_t count);  // the first of `count` consecutive ids

Entry op_entry(uint32_t name, uint16_t category, uint32_t payload_id);  // without a parent

// The caller holds the stack lock.
uint64_t open_op(ThreadState* t, Entry& entry);  // returns its id
// Logs the Python stack of the calling thread as an op's, while stacks are recorded.
void note_stack(ThreadState* t, uint64_t op);
void push_entry(ThreadState* t, const Entry& entry);
void close_entry(ThreadState* t, const Entry& entry, int64_t now);
void pop_top(ThreadState* t, int64_t now);
// Ends the entry at `index`. Entries above it stay open.
void remove_entry(ThreadState* t, uint32_t index, int64_t now);
void refresh_top(ThreadState* t);

// Whether the entry must end before the statement or function that contains it. An exception may
// leave such an entry open.
bool ends_with_caller(const Entry& entry);

}  // namespace epprof
