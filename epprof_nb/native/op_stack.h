// The per-thread op stack: what is open, what starts under it, what ends.
#pragma once

#include "threads.h"

namespace epprof {

extern std::atomic<bool> recording_ops;

// The thread's state with a stack of this recording, or null where nothing is recorded.
ThreadState* stack_thread();

uint64_t push_op(uint32_t name, uint16_t category, uint32_t meta, const void* owner,
                 uint64_t frame);
bool pop_op(uint64_t op_id);             // by id
bool pop_owner(const void* owner);       // the topmost one that `owner` opened
uint64_t top_op();

// The current-line marker; semantics in _native.pyi.
void line(uint32_t key);
void back(uint32_t key);
void enter(uint32_t key, uint64_t frame);
void leave(uint32_t key, uint64_t frame);

// For suspended.cpp and the drain; the guard must be held.
uint64_t new_op_id(ThreadState* t);
void close_entry(ThreadState* t, const Entry& entry, int64_t now);
void refresh_top(ThreadState* t);

// External correlation, the fall-back join: told of each change of the top. Null: unused.
extern void (*on_push)(uint64_t op_id);
extern void (*on_pop)();

}  // namespace epprof
