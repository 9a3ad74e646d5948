// Waits of threads for locks: who ended each; and for the clock.
#include <atomic>
#include <memory>
#include <new>
#include <vector>

#include "core/api.h"
#include "core/clock.h"
#include "core/fork.h"
#include "core/stack_entries.h"

namespace epprof {
namespace {

constexpr size_t kMaxWaits = 1000000;
constexpr int64_t kAtOnceNs = 10000;  // a try that fails within it was not meant to wait

struct Log {
  std::vector<int64_t> start, end;
  std::vector<uint64_t> thread, other;  // 0: none
  std::vector<uint8_t> kind;
};

ForkSafeMutex waits_mutex;  // guards what follows
epprof_waiter* first_waiter = nullptr;
Log* ended_waits = new Log;  // never freed: threads may wait while the process ends
bool is_recording = false;
std::atomic<int> waiters{0};

thread_local int left_out = 0;
thread_local bool has_ended_wait = false;

// The threads that waited do not exist in a child.
ResetInChild reset_waits([] {
  first_waiter = nullptr;
  waiters.store(0);
});

void remove(epprof_waiter* waiter) {
  for (epprof_waiter** at = &first_waiter; *at; at = &(*at)->next) {
    if (*at != waiter) continue;
    *at = waiter->next;
    waiters.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
}

void add(int64_t start, int64_t end, uint64_t thread, uint64_t other, int kind) {
  if (!is_recording || ended_waits->kind.size() >= kMaxWaits) return;
  try {
    ended_waits->start.push_back(start);
    ended_waits->end.push_back(end);
    ended_waits->thread.push_back(thread);
    ended_waits->other.push_back(other);
    ended_waits->kind.push_back(static_cast<uint8_t>(kind));
  } catch (const std::bad_alloc&) {
    *ended_waits = Log{};
  }
}

}  // namespace
}  // namespace epprof

using namespace epprof;

extern "C" {

void epprof_record_lock_waits(int on) {
  ForkLockGuard guard(waits_mutex);
  is_recording = on != 0;
  if (!on) *ended_waits = Log{};
}

void epprof_leave_out_lock_waits(int on) { left_out += on ? 1 : -1; }

int epprof_has_lock_waiters(void) { return waiters.load(std::memory_order_relaxed) > 0; }

void epprof_begin_lock_wait(epprof_waiter* waiter, const void* object) {
  *waiter = {nullptr, object, epprof_now_ns(), 0, 0};
  ForkLockGuard guard(waits_mutex);
  waiter->next = first_waiter;
  first_waiter = waiter;
  waiters.fetch_add(1, std::memory_order_relaxed);
}

void epprof_hand_over(const void* object) {
  int64_t now = epprof_now_ns();
  uint64_t thread = left_out ? 0 : epprof_thread_id();
  bool ends_wait = false;
  {
    ForkLockGuard guard(waits_mutex);
    for (epprof_waiter* waiter = first_waiter; waiter; waiter = waiter->next) {
      if (waiter->object != object) continue;
      waiter->handed_over = now;
      waiter->other = thread;
      ends_wait = true;
    }
  }
  if (!ends_wait || !thread) return;
  // Others depend on what the thread does, so it takes part in the recording: it is sampled. The
  // first wait that it ends is for its start.
  if (has_ended_wait) stack_thread();
  has_ended_wait = true;
}

void epprof_end_lock_wait(epprof_waiter* waiter, int kind, int has_object) {
  uint64_t thread = epprof_thread_id();
  int64_t now = has_object ? 0 : epprof_now_ns();
  ForkLockGuard guard(waits_mutex);
  remove(waiter);
  if (left_out) return;
  if (!has_object) {
    if (now - waiter->start > kAtOnceNs) add(waiter->start, now, thread, 0, kind);
  } else if (waiter->other && waiter->other != thread) {
    add(waiter->start, waiter->handed_over, thread, waiter->other, kind);
  }
}

void epprof_log_clock_wait(int64_t start, int kind) {
  int64_t end = epprof_now_ns();
  uint64_t thread = epprof_thread_id();
  ForkLockGuard guard(waits_mutex);
  if (!left_out && end - start > kAtOnceNs) add(start, end, thread, 0, kind);
}

epprof_columns* epprof_drain_lock_waits(void) {
  auto out = std::make_unique<Columns>();
  Log taken;
  {
    ForkLockGuard guard(waits_mutex);
    std::swap(taken, *ended_waits);
  }
  out->add("start_ns", std::move(taken.start));
  out->add("end_ns", std::move(taken.end));
  out->add("thread_id", std::move(taken.thread));
  out->add("other_thread_id", std::move(taken.other));
  out->add("kind", std::move(taken.kind));
  return out.release();
}

}  // extern "C"
