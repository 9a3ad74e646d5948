#include "core/greenlets.h"

#include "core/clock.h"
#include "core/external_ids.h"
#include "core/stack_entries.h"

namespace epprof {
namespace {

// The calling thread's state. Its stack is not updated, because a switch opens no op.
ThreadState* recorded_thread() {
  if (!recording_ops.load(std::memory_order_relaxed)) return nullptr;
  ThreadState* t = this_thread();
  if (t) renew_stack(t);
  return t;
}

void resume(const ThreadState* t, uint64_t greenlet, Entry& entry, int64_t now) {
  if (greenlet != t->cell_greenlet) entry.resume(now);
}

uint64_t top_of(const std::vector<Entry>& entries) {
  for (size_t i = entries.size(); i-- > 0;) {
    if (entries[i].has_row()) return entries[i].op_id;
  }
  return 0;
}

void end_stack(ThreadState* t, int64_t now) {
  while (t->depth) pop_top(t, now);
  t->untracked = 0;
  t->waiting.erase(t->greenlet);
}

void save_stack(ThreadState* t, int64_t now) {
  auto found = t->waiting.find(t->greenlet);
  if (found == t->waiting.end()) {
    if (!t->depth && !t->untracked) return;
    found = t->waiting.emplace(t->greenlet, WaitingStack{}).first;
  }
  WaitingStack& saved = found->second;
  pop_ids(t, 0);
  saved.entries.assign(t->stack, t->stack + t->depth);
  for (Entry& entry : saved.entries) entry.suspended_at = now;
  saved.untracked = t->untracked;
  saved.last_event_end = t->last_event_end;
  t->depth = t->untracked = 0;
}

void restore_stack(ThreadState* t, int64_t now) {
  t->last_event_end = 0;
  auto found = t->waiting.find(t->greenlet);
  if (found == t->waiting.end()) return;
  WaitingStack& saved = found->second;
  for (Entry& entry : saved.entries) {
    resume(t, t->greenlet, entry, now);
    push_entry(t, entry);
  }
  t->untracked += saved.untracked;
  t->last_event_end = saved.last_event_end;
  saved.entries.clear();  // keeps its memory for the next switch
  saved.untracked = 0;
}

void run_greenlet(ThreadState* t, uint64_t to, bool ended) {
  StackLockGuard stack_lock(t);
  int64_t now = epprof_now_ns();
  bool leaves_cell = t->greenlet == t->cell_greenlet;
  uint64_t top = t->top_op.load(std::memory_order_relaxed);
  if (ended) {
    end_stack(t, now);
  } else {
    save_stack(t, now);
  }
  if (leaves_cell) t->waiting_op = ended ? 0 : top;
  if (to == t->cell_greenlet) t->waiting_op = 0;
  t->greenlet = to;
  restore_stack(t, now);
  refresh_top(t);
}

}  // namespace

uint64_t greenlet_of_stack() {
  ThreadState* t = recorded_thread();
  return t ? t->greenlet.load(std::memory_order_relaxed) : 0;
}

bool see_greenlet(uint64_t current, uint64_t root) {
  ThreadState* t = recorded_thread();
  if (!t || t->greenlet == current) return false;
  if (!t->greenlet) {
    StackLockGuard stack_lock(t);
    // Ops that are already open began before the module was imported.
    t->greenlet = t->depth ? root : current;
    if (t == cell_thread.load()) t->cell_greenlet = t->greenlet.load();
    if (t->greenlet == current) return false;
  }
  run_greenlet(t, current, false);
  return true;
}

void switch_greenlet(uint64_t from, uint64_t to, bool ended) {
  ThreadState* t = recorded_thread();
  if (!t) return;
  if (!t->greenlet) t->greenlet = from;
  if (t->greenlet == to) return;
  run_greenlet(t, to, ended && t->greenlet == from);
}

void for_each_waiting(ThreadState* t, void (*each)(const Entry&, bool suspended, void*),
                      void* data) {
  for (const auto& [greenlet, saved] : t->waiting) {
    for (const Entry& entry : saved.entries) each(entry, greenlet != t->cell_greenlet, data);
  }
}

bool close_waiting_where(ThreadState* t, bool (*match)(const Entry&, const void*),
                         const void* data) {
  for (auto& [greenlet, saved] : t->waiting) {
    std::vector<Entry>& entries = saved.entries;
    for (size_t i = entries.size(); i-- > 0;) {
      if (entries[i].kind != EntryKind::op || !match(entries[i], data)) continue;
      Entry entry = entries[i];
      entries.erase(entries.begin() + ptrdiff_t(i));
      int64_t now = epprof_now_ns();
      resume(t, greenlet, entry, now);
      close_entry(t, entry, now);
      if (greenlet == t->cell_greenlet) {
        t->waiting_op = top_of(entries);
        refresh_top(t);
      }
      return true;
    }
  }
  return false;
}

}  // namespace epprof
