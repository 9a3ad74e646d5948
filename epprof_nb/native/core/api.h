// Ops, threads and the launch log: the C functions that the Python module calls. _native.pyi
// documents them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/columns.h"
#include "core/recording_costs.h"
#include "core/statement_limits.h"

#ifdef __cplusplus
extern "C" {
#endif

uint64_t epprof_thread_id(void);
void epprof_set_recording(int ops, int launches);
int epprof_recording_ops(void);
// Leaves statements out of the next recording, until its end. Does nothing in a recording, in which
// statements are open.
void epprof_leave_out_statements(void);
int epprof_recording_statements(void);
void epprof_set_limits(uint32_t op_chunks, uint32_t launch_chunks, uint32_t statement_rows,
                   uint32_t statement_repeats, uint32_t statement_pairs);
// On: the calling thread, or for a thread of the profiler the process's first one; off: none.
void epprof_set_cell_thread(int on);
void epprof_leave_out_thread(void);  // the calling thread is one of the profiler
uint32_t epprof_intern(const char* text, size_t length);
// Calls `each` with every interned string from id `first`; returns their number.
size_t epprof_strings_from(uint32_t first, void (*each)(const char*, size_t, void*), void* data);
// The demangled name, for the caller to free; null if the name is not mangled.
char* epprof_demangle(const char* name);

uint64_t epprof_push(uint32_t name, uint16_t category, uint32_t payload_id, const void* owner,
                 uint64_t frame);
uint64_t epprof_push_worker(uint32_t name, uint16_t category, uint32_t payload_id, uint64_t parent);
int epprof_pop(uint64_t op_id);
int epprof_pop_of_any_thread(uint64_t op_id);
int epprof_pop_owner(const void* owner);
uint64_t epprof_top(void);
// A pause of the garbage collector, from `start` until now.
void epprof_gc_pause(uint32_t name, uint32_t kind, int64_t start, int is_young);
uint64_t epprof_reserve_op_ids(uint64_t count);  // the first of `count` consecutive ids
uint32_t epprof_depth(void);
uint32_t epprof_add_statements(const int32_t* parents, const uint32_t* names, size_t count);
int epprof_has_statement(uint32_t key);
int epprof_is_in_function(uint32_t key);
int epprof_is_in_generator(uint32_t key);
void epprof_begin_statement(uint32_t key);
void epprof_return_to_statement(uint32_t key);
void epprof_enter_scope(uint32_t key, uint64_t frame);
void epprof_leave_scope(uint32_t key, uint64_t frame);
void epprof_suspend(uint64_t frame);
void epprof_resume(uint64_t frame);
void epprof_frame_finished(uint64_t frame);
int epprof_is_suspended(uint64_t frame);
size_t epprof_suspended_frames(void);  // number of suspended frames with ops
void epprof_watch_frame(uint64_t frame);
int epprof_is_watched(uint64_t frame);
void epprof_unwatch_frame(uint64_t frame);
size_t epprof_watched_frames(void);  // number of frames that the calling thread watches
void epprof_unwatch_frames(void);    // all frames of all threads
uint64_t epprof_greenlet(void);
int epprof_see_greenlet(uint64_t current, uint64_t root);
void epprof_switch_greenlet(uint64_t from, uint64_t to, int ended);

// Waits of threads for an object that another thread hands over, such as a lock. The kinds have the
// numbers of recording/session/lock_waits.py.
enum { EPPROF_LOCK, EPPROF_RLOCK, EPPROF_QUEUE, EPPROF_SLEEP };
// A wait that has not ended yet, on the stack of its thread.
typedef struct epprof_waiter {
  struct epprof_waiter* next;
  const void* object;
  int64_t start, handed_over;
  uint64_t other;  // the thread that has handed it over; 0: none that is recorded
} epprof_waiter;
void epprof_record_lock_waits(int on);
// From now on, or no longer: the calling thread waits as a part of a device or of the profiler.
void epprof_leave_out_lock_waits(int on);
int epprof_has_lock_waiters(void);
void epprof_begin_lock_wait(epprof_waiter* waiter, const void* object);
// The calling thread hands an object over now: those that wait for it may go on.
void epprof_hand_over(const void* object);
// Logs the wait if another thread ended it, or if the caller has waited for a time in vain.
void epprof_end_lock_wait(epprof_waiter* waiter, int kind, int has_object);
// Logs that the calling thread waited for nothing but the clock.
void epprof_log_clock_wait(int64_t start, int kind);
epprof_columns* epprof_drain_lock_waits(void);

void epprof_log_host_call(uint32_t name, int64_t start, int64_t end, uint64_t correlation);
uint64_t epprof_next_correlation(void);
// Columns of the threads' logs since the last drain. `lost`: records dropped since then because the
// chunk pool was exhausted. Counts of ops: lost ones, and statements in recursion without a record.
epprof_columns* epprof_drain_ops(int64_t end_ns, int open_too, uint64_t counts[2]);
epprof_columns* epprof_drain_launches(uint64_t* lost);
epprof_columns* epprof_drain_node_usage(void);
epprof_columns* epprof_drain_op_stacks(void);
epprof_columns* epprof_ended_threads(void);  // ids and names of ended threads not yet freed
// The log of the cell's thread, for recorders without launch callbacks.
void epprof_start_cell_log(void);
void epprof_stop_cell_log(void);
epprof_columns* epprof_take_cell_log(uint64_t* thread);
void epprof_pool_state(uint64_t out[4]);  // op chunks in use, limit; launch chunks in use, limit

#ifdef __cplusplus
}
#endif
