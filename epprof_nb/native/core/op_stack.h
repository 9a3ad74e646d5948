// The op stack of each thread: open ops, statements of instrumented cells, and function scopes.
#pragma once

#include "core/threads.h"

namespace epprof {

extern std::atomic<bool> recording_ops;

// The calling thread's state, with its stack reset for this recording. Null if not recording.
ThreadState* stack_thread();
void clear_stack(ThreadState* t, uint64_t new_epoch);  // and frees its memory

// `frame`: the generator or coroutine frame that the op belongs to; 0: none.
uint64_t push_op(uint32_t name, uint16_t category, uint32_t payload_id, const void* owner,
                 uint64_t frame);
// For work that another thread waits for: without an open op on this thread, the parent is `parent`.
// Another thread may end it.
uint64_t push_worker_op(uint32_t name, uint16_t category, uint32_t payload_id, uint64_t parent);
// An operator or a node. On a worker thread without an open op, the parent is `parent`; returns 0 and
// opens nothing if that is 0.
uint64_t push_operator(uint32_t name, uint16_t category, uint32_t payload_id, int64_t sequence,
                       uint64_t parent, bool is_worker);
bool pop_op(uint64_t op_id);
bool pop_op_of_any_thread(uint64_t op_id);
bool pop_owner(const void* owner);  // the topmost op that `owner` opened
uint64_t top_op();
uint64_t reserve_op_ids(uint64_t count);  // the first of as many consecutive ids

// Events of another profiler, whose final name and category are known at their end. `tag` is the
// owner's id of the event and need not be unique. `parent` is used on threads where the owner has
// no open event (pool threads); 0: the open op. `name` and `category` hold while the event is open.
struct EventEnd {
  int64_t at_ns;        // when the owner reported the end
  int64_t duration_ns;  // as the owner measured it; -1: until `at_ns`
  uint32_t name;
  uint16_t category;
  uint32_t payload_id;
};
uint64_t push_event(const void* owner, uint32_t tag, uint64_t parent, uint32_t name,
                    uint16_t category);
bool is_event_open(const void* owner, uint32_t tag);
// Returns the op of the event; 0: none was open.
uint64_t end_event(const void* owner, uint32_t tag, const EventEnd& end);
void log_node_usage(const NodeUsageRecord& record);

// The markers in instrumented cells; see `line`, `back`, `enter` and `leave` in _native.pyi.
void begin_statement(uint32_t key);
void return_to_statement(uint32_t key);
void enter_scope(uint32_t key, uint64_t frame);
void leave_scope(uint32_t key, uint64_t frame);

// For suspended_ops.cpp and drain.cpp. The caller holds the stack lock.
uint64_t new_op_id(ThreadState* t);
void push_entry(ThreadState* t, const Entry& entry);
void close_entry(ThreadState* t, const Entry& entry, int64_t now);
void refresh_top(ThreadState* t);

}  // namespace epprof
