#include "core/launch_log.h"

#include "core/clock.h"
#include "core/fork.h"
#include "core/op_stack.h"

namespace epprof {

std::atomic<bool> recording_launches{false};
std::atomic<uint64_t> call_session{0};
std::atomic<void (*)(ThreadState*, uint64_t, uint32_t)> launch_observer{nullptr};

namespace {

ResetInChild reset_launches([] { recording_launches = false; });
std::atomic<uint64_t> host_correlations{uint64_t(1) << 32};

// The op that is open on the cell's thread. A flag says whether that thread seems to wait.
uint64_t op_of_cell(ThreadState* t, const ThreadState* cell, int64_t now, uint16_t* flags) {
  uint64_t stack_changes = cell->stack_changes.load(std::memory_order_relaxed);
  uint64_t op = cell->top_op.load(std::memory_order_relaxed);
  switch (t->cell_wait.at_launch(cell->tid, stack_changes, thread_cpu_time(cell->tid), now)) {
    case CellThreadWait::waits: *flags |= kCellThreadIdle; break;
    case CellThreadWait::runs: *flags |= kCellThreadBusy; break;
    case CellThreadWait::unknown: break;
  }
  return op;
}

// The op that a launch is attributed to: the open op of this thread and greenlet, otherwise the
// open op of the cell's thread, marked kNoOpOnThread.
uint64_t launch_op(ThreadState* t, int64_t now, uint16_t* flags) {
  if (auto* update = update_stack.load(std::memory_order_relaxed)) update(t);
  uint64_t recording = epoch.load(std::memory_order_relaxed);
  uint64_t top = t->top_op.load(std::memory_order_relaxed);
  if (t->epoch.load(std::memory_order_relaxed) == recording && top) {
    if (top != t->waiting_op.load(std::memory_order_relaxed)) return top;
    *flags |= kCellThreadIdle; // the cell's greenlet waits for the launching one
    return kNoOpOnThread | top;
  }
  // Set this before the load. Either `free_ended_threads` sees it, or it has already reset the
  // cell's thread.
  t->reads_cell_thread.exchange(true);
  ThreadState* cell = cell_thread.load();
  uint64_t op = cell && cell != t ? op_of_cell(t, cell, now, flags) : 0;
  t->reads_cell_thread.store(false, std::memory_order_release);
  return kNoOpOnThread | op;
}

void write(ThreadState* t, uint64_t correlation, uint64_t op, int64_t start, int64_t end,
           uint32_t name, int32_t result, uint16_t flags, uint16_t domain, uint32_t stack) {
  t->last_call.store(end, std::memory_order_relaxed);
  if (LaunchRecord* record = t->launches.begin(launch_pool)) {
    *record = {correlation, op, start, end, name, result, flags, domain, stack};
    t->launches.commit();
  }
}

}  // namespace

void call_begins(ThreadState* t, uint64_t correlation, uint32_t name, uint16_t domain) {
  OpenCall call{correlation, 0, epprof_now_ns(), name, 0, domain,
                launch_stack(t, correlation)};
  t->node_created = false;
  t->last_call.store(call.start, std::memory_order_relaxed);
  call.op = launch_op(t, call.start, &call.flags);
  uint64_t session = call_session.load(std::memory_order_relaxed);
  if (!t->open_calls.push(session, call)) t->launches.lost.fetch_add(1, std::memory_order_relaxed);
}

CallInterval call_ends(ThreadState* t, uint64_t correlation, uint32_t name, int32_t result) {
  OpenCall call;
  uint64_t session = call_session.load(std::memory_order_relaxed);
  if (!t->open_calls.pop(session, correlation, name, &call)) return {0, 0};
  if (t->node_created) call.flags |= kCaptured;
  if (t->in_profiler.load(std::memory_order_relaxed)) call.flags |= kProfilerInternal;
  int64_t end = epprof_now_ns();
  write(t, correlation, call.op, call.start, end, name, result, call.flags, call.domain, call.stack);
  return {call.start, end};
}

bool call_in_progress(const ThreadState* t, LaunchRecord* record) {
  OpenCall call;
  if (t->in_profiler.load(std::memory_order_relaxed)) return false;
  if (!t->open_calls.innermost(call_session.load(std::memory_order_relaxed), &call)) return false;
  auto flags = uint16_t(call.flags | kInProgress);
  *record = {call.correlation, call.op, call.start,  call.start, call.name,
             0,                flags,   call.domain, call.stack};
  return true;
}

uint32_t launch_stack(ThreadState* t, uint64_t correlation) {
  auto* read = read_stack.load(std::memory_order_relaxed);
  if (!read) return kNoStack;
  // A call of the runtime makes calls of the driver, with the same frames.
  OpenCall call;
  uint64_t session = call_session.load(std::memory_order_relaxed);
  if (t->open_calls.innermost(session, &call)) return call.stack;
  uint32_t stack = read(t);
  auto* observe = launch_observer.load(std::memory_order_relaxed);
  if (observe && correlation) observe(t, correlation, stack);
  return stack;
}

void log_host_call(uint32_t name, int64_t start, int64_t end, uint64_t correlation) {
  if (!recording_launches.load(std::memory_order_relaxed)) return;
  ThreadState* t = this_thread();
  if (!t) return;
  uint16_t flags = 0;
  uint64_t op = launch_op(t, start, &flags);
  write(t, correlation, op, start, end, name, 0, flags, kHost,
        launch_stack(t, correlation));
}

uint64_t next_host_correlation() {
  // Update the stack before the call, because ops that begin with it must not begin after its work.
  if (auto* update = update_stack.load(std::memory_order_relaxed)) {
    if (ThreadState* t = this_thread()) update(t);
  }
  return host_correlations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace epprof
