// The C functions over the op stack, the threads and the launch log.
#include "core/api.h"

#include <cxxabi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/cell_log.h"
#include "core/fork.h"
#include "core/greenlets.h"
#include "core/launch_log.h"
#include "core/op_stack.h"
#include "core/statement_stack.h"
#include "core/statements.h"
#include "core/string_table.h"
#include "core/suspended_ops.h"
#include "core/watched_frames.h"

using namespace epprof;

constexpr uint32_t kChunksKept = 64;  // 2 MiB of each log, for the next session

static thread_local uint64_t own_id;  // 0: not asked for yet; a system call takes longer
static ResetInChild reset_own_id([] { own_id = 0; });

extern "C" {

uint64_t epprof_thread_id(void) {
  if (!own_id) own_id = uint64_t(syscall(SYS_gettid));
  return own_id;
}

void epprof_set_recording(int ops, int launches) {
  bool was = recording_ops.load();
  if (ops && !was) {
    epoch++;
    clear_suspended();
    CoalescedStatements::start_session();
    op_pool.start_session();
    launch_pool.start_session();
    op_pool.prefault(kChunksKept);
    launch_pool.prefault(kChunksKept);
  }
  recording_ops = ops != 0;
  recording_launches = launches != 0;
  if (was && !ops) {
    recording_statements = true;
    clear_suspended();
    for_each_thread([](ThreadState* t, void*) { clear_stack(t, 0); }, nullptr);
  }
  if (!ops && !launches) {
    op_pool.trim(kChunksKept);
    launch_pool.trim(kChunksKept);
  }
}

void epprof_leave_out_statements(void) {
  if (!recording_ops) recording_statements = false;
}

int epprof_recording_statements(void) {
  return epprof_recording_ops() && recording_statements.load(std::memory_order_relaxed);
}

int epprof_recording_ops(void) { return recording_ops.load(std::memory_order_relaxed); }

void epprof_set_limits(uint32_t op_chunks, uint32_t launch_chunks, uint32_t statement_rows,
                   uint32_t statement_repeats, uint32_t statement_pairs) {
  op_pool.set_bound(op_chunks);
  launch_pool.set_bound(launch_chunks);
  limits.statement_rows = statement_rows;
  limits.statement_repeats = statement_repeats;
  CoalescedStatements::set_bound(statement_pairs);
}

void epprof_set_cell_thread(int on) {
  ThreadState* t = on ? this_thread() : nullptr;
  cell_thread = t && t->is_own ? first_thread() : t;
}

void epprof_leave_out_thread(void) {
  if (ThreadState* t = this_thread()) t->is_own = true;
}

uint32_t epprof_intern(const char* name, size_t length) { return intern({name, length}); }

size_t epprof_strings_from(uint32_t first, void (*each)(const char*, size_t, void*), void* data) {
  auto strings = strings_from(first);
  for (const std::string& text : strings) each(text.data(), text.size(), data);
  return strings.size();
}

uint64_t epprof_push(uint32_t name, uint16_t category, uint32_t payload_id, const void* owner,
                 uint64_t frame) {
  return push_op(name, category, payload_id, owner, frame);
}

uint64_t epprof_push_worker(uint32_t name, uint16_t category, uint32_t payload_id, uint64_t parent) {
  return push_worker_op(name, category, payload_id, parent);
}

int epprof_pop(uint64_t op_id) { return pop_op(op_id); }
int epprof_pop_of_any_thread(uint64_t op_id) { return pop_op_of_any_thread(op_id); }
int epprof_pop_owner(const void* owner) { return pop_owner(owner); }
uint64_t epprof_top(void) { return top_op(); }

uint64_t epprof_reserve_op_ids(uint64_t count) { return reserve_op_ids(count); }

uint32_t epprof_depth(void) {
  ThreadState* t = stack_thread();
  return t ? t->depth : 0;
}

uint32_t epprof_add_statements(const int32_t* parents, const uint32_t* names, size_t count) {
  return add_statements(parents, names, count);
}

int epprof_has_statement(uint32_t key) { return statement(key) != nullptr; }
int epprof_is_in_function(uint32_t key) { return is_in_function(key); }
int epprof_is_in_generator(uint32_t key) { return is_in_generator(key); }
void epprof_begin_statement(uint32_t key) { begin_statement(key); }
void epprof_return_to_statement(uint32_t key) { return_to_statement(key); }
void epprof_enter_scope(uint32_t key, uint64_t frame) { enter_scope(key, frame); }
void epprof_leave_scope(uint32_t key, uint64_t frame) { leave_scope(key, frame); }
void epprof_suspend(uint64_t frame) { suspend_frame(frame); }
void epprof_resume(uint64_t frame) { resume_frame(frame); }
void epprof_frame_finished(uint64_t frame) { frame_finished(frame); }
int epprof_is_suspended(uint64_t frame) { return is_suspended(frame); }
size_t epprof_suspended_frames(void) { return suspended_frames(); }

void epprof_watch_frame(uint64_t frame) { watch_frame(frame); }
int epprof_is_watched(uint64_t frame) { return is_watched(frame); }
void epprof_unwatch_frame(uint64_t frame) { unwatch_frame(frame); }
size_t epprof_watched_frames(void) { return watched_frames(); }
void epprof_unwatch_frames(void) { unwatch_all_frames(); }

uint64_t epprof_greenlet(void) { return greenlet_of_stack(); }
int epprof_see_greenlet(uint64_t current, uint64_t root) { return see_greenlet(current, root); }
void epprof_switch_greenlet(uint64_t from, uint64_t to, int ended) {
  switch_greenlet(from, to, ended != 0);
}

void epprof_log_host_call(uint32_t name, int64_t start, int64_t end, uint64_t correlation) {
  log_host_call(name, start, end, correlation);
}

uint64_t epprof_next_correlation(void) { return next_host_correlation(); }

void epprof_start_cell_log(void) { start_cell_log(); }
void epprof_stop_cell_log(void) { stop_cell_log(); }
epprof_columns* epprof_take_cell_log(uint64_t* thread) { return take_cell_log(thread); }

void epprof_pool_state(uint64_t out[4]) {
  out[0] = op_pool.in_use();
  out[1] = op_pool.bound();
  out[2] = launch_pool.in_use();
  out[3] = launch_pool.bound();
}

char* epprof_demangle(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  return status == 0 ? text : nullptr;
}

}  // extern "C"
