#include "core/launch_log.h"

#include "core/clock.h"
#include "core/fork.h"
#include "core/op_stack.h"

namespace epprof {

std::atomic<bool> recording_launches{false};

namespace {

ResetInChild reset([] { recording_launches = false; });
std::atomic<uint64_t> host_correlations{uint64_t(1) << 32};

// The op that a launch is attributed to: the one open on this thread, otherwise the one open on the
// cell's thread, marked kNoOpOnThread. A flag says whether that thread seems to wait for this one:
// a waiting thread uses no CPU time between our launches, and its stack does not change.
uint64_t launch_op(ThreadState* t, int64_t now, uint16_t* flags) {
  if (auto* update = update_stack.load(std::memory_order_relaxed)) update(t);
  uint64_t recording = epoch.load(std::memory_order_relaxed);
  if (t->epoch.load(std::memory_order_relaxed) == recording && t->top_op) return t->top_op;
  ThreadState* cell = cell_thread.load(std::memory_order_acquire);
  if (!cell || cell == t) return kNoOpOnThread;
  uint64_t stack_changes = cell->stack_changes.load(std::memory_order_relaxed);
  uint64_t op = cell->top_op.load(std::memory_order_relaxed);
  int64_t cpu = thread_cpu_time(cell->tid);
  if (stack_changes == t->cell_stack_changes && cpu >= 0) {
    bool idle = (cpu - t->cell_cpu_ns) * 8 <= now - t->cell_seen_ns;
    *flags |= idle ? kCellThreadIdle : kCellThreadBusy;
  }
  t->cell_stack_changes = stack_changes;
  t->cell_cpu_ns = cpu;
  t->cell_seen_ns = now;
  return kNoOpOnThread | op;
}

void write(ThreadState* t, uint64_t correlation, uint64_t op, int64_t start, int64_t end,
           uint32_t name, int32_t result, uint16_t flags, uint16_t domain) {
  if (LaunchRecord* record = t->launches.begin(launch_pool)) {
    *record = {correlation, op, start, end, name, result, flags, domain};
    t->launches.commit();
  }
}

}  // namespace

void call_begins(ThreadState* t, uint64_t correlation, uint32_t name, int64_t now) {
  t->node_created = false;
  t->call_flags = 0;
  t->call_op = launch_op(t, now, &t->call_flags);
  t->call_start = now;
  t->call_name = name;
  t->call_correlation.store(correlation, std::memory_order_release);
}

void call_ends(ThreadState* t, uint64_t correlation, uint32_t name, int64_t start, int32_t result,
               uint16_t domain) {
  // If a call was nested in this one (the driver call of a runtime call), it has overwritten the
  // fields. The stack is still the same, so its op is this call's.
  bool overwritten = t->call_correlation.load(std::memory_order_relaxed) != correlation ||
                     t->call_start != start;
  int64_t now = ep_now_ns();
  uint16_t flags = t->call_flags;
  uint64_t op = t->call_op;
  if (overwritten) {
    flags = 0;
    op = launch_op(t, now, &flags);
  }
  flags |= uint16_t((t->node_created ? kCaptured : 0) | (t->in_profiler ? kProfilerInternal : 0));
  write(t, correlation, op, start, now, name, result, flags, domain);
  t->call_correlation.store(0, std::memory_order_release);
}

void log_host_call(uint32_t name, int64_t start, int64_t end, uint64_t correlation) {
  if (!recording_launches.load(std::memory_order_relaxed)) return;
  ThreadState* t = this_thread();
  if (!t) return;
  uint16_t flags = 0;
  uint64_t op = launch_op(t, start, &flags);
  write(t, correlation, op, start, end, name, 0, flags, kHost);
}

uint64_t next_host_correlation() {
  return host_correlations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace epprof
