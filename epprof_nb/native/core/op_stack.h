// The per-thread op stack: what is open, what starts under it, what ends.
#pragma once

#include "core/threads.h"

namespace epprof {

extern std::atomic<bool> recording_ops;

// The thread's state with a stack of this recording, or null where nothing is recorded.
ThreadState* stack_thread();

uint64_t push_op(uint32_t name, uint16_t category, uint32_t payload_id, const void* owner,
                 uint64_t frame);
bool pop_op(uint64_t op_id);             // by id
bool pop_owner(const void* owner);       // the topmost one that `owner` opened
uint64_t top_op();

// Events of another profiler, which are described only at their end. `tag` is the owner's id of
// the event; it need not be unique. `above` is the parent of an event that starts on a thread on
// which the owner has nothing open (a pool's); 0: what is open there. `name` and `category` are
// shown while the event is open.
struct EventEnd {
  int64_t at_ns;
  uint32_t name;
  uint16_t category;
  uint32_t payload_id;
};
uint64_t push_event(const void* owner, uint32_t tag, uint64_t above, uint32_t name,
                    uint16_t category);
bool event_open(const void* owner, uint32_t tag);
void end_event(const void* owner, uint32_t tag, const EventEnd& end);

// The current-line marker; semantics in _native.pyi.
void line(uint32_t key);
void back(uint32_t key);
void enter(uint32_t key, uint64_t frame);
void leave(uint32_t key, uint64_t frame);

// For suspended_ops.cpp and the drain; the stack_lock must be held.
uint64_t new_op_id(ThreadState* t);
void close_entry(ThreadState* t, const Entry& entry, int64_t now);
void refresh_top(ThreadState* t);

// External correlation, the fall-back join: told of each change of the top. Null: unused.
extern void (*on_push)(uint64_t op_id);
extern void (*on_pop)();

}  // namespace epprof
