#include "core/suspended_ops.h"

#include <atomic>
#include <unordered_map>

#include "core/clock.h"
#include "core/external_ids.h"
#include "core/fork.h"
#include "core/stack_entries.h"

namespace epprof {
namespace {

struct SuspendedFrame {
  ThreadState* home;  // only compared: the thread may have ended
  uint64_t tid;       // of the thread
  std::vector<Entry> entries;
};

ForkSafeMutex frames_mutex;
auto& frames = *new std::unordered_map<uint64_t, SuspendedFrame>;
std::atomic<size_t> frame_count{0};  // of `frames`; changes with them
ResetInChild reset_suspended([] {
  frames.clear();
  frame_count = 0;
});

bool pop_suspended(uint64_t frame, SuspendedFrame& suspended) {
  if (!suspended_frames()) return false;
  ForkLockGuard lock(frames_mutex);
  auto found = frames.find(frame);
  if (found == frames.end()) return false;
  suspended = std::move(found->second);
  frames.erase(found);
  frame_count = frames.size();
  return true;
}

void resume_entry(Entry& entry, const ThreadState* home, const ThreadState* here, int64_t now) {
  entry.resume(now);
  if (entry.statement_row && home != here) entry.statement_row = kOtherThreadRow;
}

}  // namespace

void suspend_frame(uint64_t frame) {
  ThreadState* t = stack_thread();
  if (!t) return;
  std::vector<Entry> entries;
  {
    StackLockGuard stack_lock(t);
    int64_t now = epprof_now_ns();
    uint32_t first = 0;
    while (first < t->depth && t->stack[first].frame != frame) first++;
    if (first == t->depth) return;
    pop_ids(t, first);
    uint32_t kept = first;
    for (uint32_t i = first; i < t->depth; i++) {
      if (t->stack[i].frame == frame) {
        entries.push_back(t->stack[i]);
        entries.back().suspended_at = now;
      } else {
        if (kept != i) t->stack[kept] = t->stack[i];
        kept++;
      }
    }
    t->depth = kept;
    push_ids(t, first);
    refresh_top(t);
  }
  ForkLockGuard lock(frames_mutex);
  frames[frame] = {t, t->tid, std::move(entries)};
  frame_count = frames.size();
}

void resume_frame(uint64_t frame) {
  ThreadState* t = stack_thread();
  if (!t) return;
  SuspendedFrame suspended;
  if (!pop_suspended(frame, suspended)) return;
  StackLockGuard stack_lock(t);
  int64_t now = epprof_now_ns();
  for (Entry& entry : suspended.entries) {
    resume_entry(entry, suspended.home, t, now);
    push_entry(t, entry);
  }
}

void frame_finished(uint64_t frame) {
  SuspendedFrame suspended;
  if (!pop_suspended(frame, suspended)) return;
  ThreadState* t = stack_thread();
  if (!t) return;
  StackLockGuard stack_lock(t);
  int64_t now = epprof_now_ns();
  for (Entry& entry : suspended.entries) {
    resume_entry(entry, suspended.home, t, now);
    close_entry(t, entry, now);
  }
}

bool is_suspended(uint64_t frame) {
  if (!suspended_frames()) return false;
  ForkLockGuard lock(frames_mutex);
  return frames.count(frame) != 0;
}

size_t suspended_frames() { return frame_count.load(std::memory_order_relaxed); }

void clear_suspended() {
  ForkLockGuard lock(frames_mutex);
  frames.clear();
  frame_count = 0;
}

void for_each_suspended(void (*each)(const Entry&, uint64_t tid, void*), void* data) {
  ForkLockGuard lock(frames_mutex);
  for (const auto& [frame, suspended] : frames) {
    for (const Entry& entry : suspended.entries) each(entry, suspended.tid, data);
  }
}

bool close_suspended_where(ThreadState* t, bool (*match)(const Entry&, const void*),
                           const void* data) {
  ForkLockGuard lock(frames_mutex);
  for (auto& [frame, suspended] : frames) {
    std::vector<Entry>& entries = suspended.entries;
    for (size_t i = entries.size(); i-- > 0;) {
      if (entries[i].kind != EntryKind::op || !match(entries[i], data)) continue;
      Entry entry = entries[i];
      const ThreadState* home_thread = suspended.home;
      entries.erase(entries.begin() + ptrdiff_t(i));
      if (entries.empty()) frames.erase(frame);
      frame_count = frames.size();
      int64_t now = epprof_now_ns();
      resume_entry(entry, home_thread, t, now);
      StackLockGuard stack_lock(t);
      close_entry(t, entry, now);
      return true;
    }
  }
  return false;
}

}  // namespace epprof
