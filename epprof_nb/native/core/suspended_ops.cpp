#include "core/suspended_ops.h"

#include <mutex>
#include <unordered_map>

#include "core/clock.h"
#include "core/op_stack.h"

namespace epprof {
namespace {

struct Segment {
  ThreadState* home;  // only compared: the thread may have ended
  std::vector<Entry> entries;
};

struct Frames {
  std::mutex mutex;
  std::unordered_map<uint64_t, Segment> segments;
};

Frames& frames() {
  static Frames* f = new Frames;
  return *f;
}

bool take(uint64_t frame, Segment& segment) {
  Frames& f = frames();
  std::lock_guard<std::mutex> lock(f.mutex);
  auto found = f.segments.find(frame);
  if (found == f.segments.end()) return false;
  segment = std::move(found->second);
  f.segments.erase(found);
  return true;
}

void wake(Entry& entry, const ThreadState* home, const ThreadState* here, int64_t now) {
  entry.suspended += now - entry.suspended_at;
  if (entry.row && home != here) entry.row = kForeignRow;
}

}  // namespace

void suspend_frame(uint64_t frame) {
  ThreadState* t = stack_thread();
  if (!t) return;
  std::vector<Entry> taken;
  {
    Guard guard(t);
    int64_t now = ep_now_ns();
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->depth; i++) {
      if (t->stack[i].frame == frame) {
        taken.push_back(t->stack[i]);
        taken.back().suspended_at = now;
        if (t->stack[i].op_id && on_pop) on_pop();
      } else {
        if (kept != i) t->stack[kept] = t->stack[i];
        kept++;
      }
    }
    if (taken.empty()) return;
    t->depth = kept;
    refresh_top(t);
  }
  Frames& f = frames();
  std::lock_guard<std::mutex> lock(f.mutex);
  f.segments[frame] = {t, std::move(taken)};
}

void resume_frame(uint64_t frame) {
  ThreadState* t = stack_thread();
  if (!t) return;
  Segment segment;
  if (!take(frame, segment)) return;
  Guard guard(t);
  int64_t now = ep_now_ns();
  for (Entry& entry : segment.entries) {
    wake(entry, segment.home, t, now);
    if (t->depth == kMaxDepth) {
      t->overflow++;
      continue;
    }
    t->stack[t->depth++] = entry;
    if (entry.op_id && on_push) on_push(entry.op_id);
  }
  refresh_top(t);
}

void forget_frame(uint64_t frame) {
  Segment segment;
  if (!take(frame, segment)) return;
  ThreadState* t = stack_thread();
  if (!t) return;
  Guard guard(t);
  int64_t now = ep_now_ns();
  for (Entry& entry : segment.entries) {
    wake(entry, segment.home, t, now);
    close_entry(t, entry, now);
  }
}

void clear_suspended() {
  Frames& f = frames();
  std::lock_guard<std::mutex> lock(f.mutex);
  f.segments.clear();
}

void for_each_suspended(void (*each)(const Entry&, void*), void* data) {
  Frames& f = frames();
  std::lock_guard<std::mutex> lock(f.mutex);
  for (const auto& [frame, segment] : f.segments) {
    for (const Entry& entry : segment.entries) each(entry, data);
  }
}

bool close_suspended_where(ThreadState* t, bool (*match)(const Entry&, const void*),
                           const void* data) {
  Frames& f = frames();
  std::lock_guard<std::mutex> lock(f.mutex);
  for (auto& [frame, segment] : f.segments) {
    std::vector<Entry>& entries = segment.entries;
    for (size_t i = entries.size(); i-- > 0;) {
      if (entries[i].kind != EntryKind::op || !match(entries[i], data)) continue;
      Entry entry = entries[i];
      const ThreadState* segment_home = segment.home;
      entries.erase(entries.begin() + ptrdiff_t(i));
      if (entries.empty()) f.segments.erase(frame);
      int64_t now = ep_now_ns();
      wake(entry, segment_home, t, now);
      Guard guard(t);
      close_entry(t, entry, now);
      return true;
    }
  }
  return false;
}

}  // namespace epprof
