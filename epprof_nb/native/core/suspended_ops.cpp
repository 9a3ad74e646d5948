#include "core/suspended_ops.h"

#include <mutex>
#include <unordered_map>

#include "core/clock.h"
#include "core/op_stack.h"

namespace epprof {
namespace {

struct SuspendedFrame {
  ThreadState* home;  // compared only, never read: the thread may have ended
  std::vector<Entry> entries;
};

struct SuspendedFrames {
  std::mutex mutex;
  std::unordered_map<uint64_t, SuspendedFrame> by_frame;
};

SuspendedFrames& frames() {
  static SuspendedFrames* f = new SuspendedFrames;
  return *f;
}

bool pop_suspended(uint64_t frame, SuspendedFrame& suspended) {
  SuspendedFrames& f = frames();
  std::lock_guard<std::mutex> lock(f.mutex);
  auto found = f.by_frame.find(frame);
  if (found == f.by_frame.end()) return false;
  suspended = std::move(found->second);
  f.by_frame.erase(found);
  return true;
}

void resume_entry(Entry& entry, const ThreadState* home, const ThreadState* here, int64_t now) {
  entry.suspended += now - entry.suspended_at;
  if (entry.statement_row && home != here) entry.statement_row = kOtherThreadRow;
}

}  // namespace

void suspend_frame(uint64_t frame) {
  ThreadState* t = stack_thread();
  if (!t) return;
  std::vector<Entry> entries;
  {
    StackLockGuard stack_lock(t);
    int64_t now = ep_now_ns();
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->depth; i++) {
      if (t->stack[i].frame == frame) {
        entries.push_back(t->stack[i]);
        entries.back().suspended_at = now;
        if (t->stack[i].op_id && on_pop) on_pop();
      } else {
        if (kept != i) t->stack[kept] = t->stack[i];
        kept++;
      }
    }
    if (entries.empty()) return;
    t->depth = kept;
    refresh_top(t);
  }
  SuspendedFrames& f = frames();
  std::lock_guard<std::mutex> lock(f.mutex);
  f.by_frame[frame] = {t, std::move(entries)};
}

void resume_frame(uint64_t frame) {
  ThreadState* t = stack_thread();
  if (!t) return;
  SuspendedFrame suspended;
  if (!pop_suspended(frame, suspended)) return;
  StackLockGuard stack_lock(t);
  int64_t now = ep_now_ns();
  for (Entry& entry : suspended.entries) {
    resume_entry(entry, suspended.home, t, now);
    if (t->depth == kMaxDepth) {
      t->overflow++;
      continue;
    }
    t->stack[t->depth++] = entry;
    if (entry.op_id && on_push) on_push(entry.op_id);
  }
  refresh_top(t);
}

void frame_finished(uint64_t frame) {
  SuspendedFrame suspended;
  if (!pop_suspended(frame, suspended)) return;
  ThreadState* t = stack_thread();
  if (!t) return;
  StackLockGuard stack_lock(t);
  int64_t now = ep_now_ns();
  for (Entry& entry : suspended.entries) {
    resume_entry(entry, suspended.home, t, now);
    close_entry(t, entry, now);
  }
}

void clear_suspended() {
  SuspendedFrames& f = frames();
  std::lock_guard<std::mutex> lock(f.mutex);
  f.by_frame.clear();
}

void for_each_suspended(void (*each)(const Entry&, void*), void* data) {
  SuspendedFrames& f = frames();
  std::lock_guard<std::mutex> lock(f.mutex);
  for (const auto& [frame, suspended] : f.by_frame) {
    for (const Entry& entry : suspended.entries) each(entry, data);
  }
}

bool close_suspended_where(ThreadState* t, bool (*match)(const Entry&, const void*),
                           const void* data) {
  SuspendedFrames& f = frames();
  std::lock_guard<std::mutex> lock(f.mutex);
  for (auto& [frame, suspended] : f.by_frame) {
    std::vector<Entry>& entries = suspended.entries;
    for (size_t i = entries.size(); i-- > 0;) {
      if (entries[i].kind != EntryKind::op || !match(entries[i], data)) continue;
      Entry entry = entries[i];
      const ThreadState* home_thread = suspended.home;
      entries.erase(entries.begin() + ptrdiff_t(i));
      if (entries.empty()) f.by_frame.erase(frame);
      int64_t now = ep_now_ns();
      resume_entry(entry, home_thread, t, now);
      StackLockGuard stack_lock(t);
      close_entry(t, entry, now);
      return true;
    }
  }
  return false;
}

}  // namespace epprof
