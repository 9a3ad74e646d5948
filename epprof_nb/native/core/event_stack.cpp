#include "core/event_stack.h"

#include <algorithm>

#include "core/stack_entries.h"

namespace epprof {
namespace {

// Index of the topmost entry of `owner`, with `tag` if given. UINT32_MAX: none.
uint32_t find_open_event(const ThreadState* t, const void* owner, const uint32_t* tag) {
  for (uint32_t i = t->depth; i-- > 0;) {
    const Entry& entry = t->stack[i];
    if (entry.owner == owner && (!tag || entry.payload_id == *tag)) return i;
  }
  return UINT32_MAX;
}

}  // namespace

uint64_t push_event(const void* owner, uint32_t tag, uint64_t parent, uint32_t name,
                    uint16_t category) {
  ThreadState* t = stack_thread();
  if (!t) return 0;
  StackLockGuard stack_lock(t);
  Entry entry = op_entry(name, category, tag);
  entry.owner = owner;
  bool use_parent = parent && find_open_event(t, owner, nullptr) == UINT32_MAX;
  entry.parent = use_parent ? parent : t->top_op.load();
  return open_op(t, entry);
}

bool is_event_open(const void* owner, uint32_t tag) {
  ThreadState* t = stack_thread();
  if (!t) return false;
  StackLockGuard stack_lock(t);
  return find_open_event(t, owner, &tag) != UINT32_MAX;
}

uint64_t end_event(const void* owner, uint32_t tag, const EventEnd& end) {
  ThreadState* t = stack_thread();
  if (!t) return 0;
  StackLockGuard stack_lock(t);
  uint32_t index = find_open_event(t, owner, &tag);
  if (index == UINT32_MAX) return 0;
  // The owner's events nest, so events above this one were left open by an error.
  for (uint32_t i = t->depth; i-- > index + 1;) {
    if (t->stack[i].owner == owner) remove_entry(t, i, end.at_ns);
  }
  Entry& entry = t->stack[index];
  entry.name = end.name;
  entry.category = end.category;
  entry.payload_id = end.payload_id;
  int64_t at = end.at_ns;
  if (end.duration_ns >= 0) at = std::min(at, entry.start + end.duration_ns);
  // Durations of the owner are rounded: an event ends no sooner than the events inside it.
  at = std::max(at, std::min(t->last_event_end, end.at_ns));
  t->last_event_end = at;
  uint64_t op = entry.op_id;
  remove_entry(t, index, at);
  return op;
}

int end_events_of(const void* owner, int64_t since_ns, const EventEnd& end) {
  ThreadState* t = stack_thread();
  if (!t) return 0;
  StackLockGuard stack_lock(t);
  int ended = 0;
  for (uint32_t i = t->depth; i-- > 0;) {
    Entry& entry = t->stack[i];
    if (entry.owner != owner || entry.start < since_ns) continue;
    entry.name = end.name;
    entry.category = end.category;
    entry.payload_id = end.payload_id;
    remove_entry(t, i, end.at_ns);
    ended++;
  }
  return ended;
}

void log_node_usage(const NodeUsageRecord& record) {
  ThreadState* t = stack_thread();
  if (!t) return;
  if (NodeUsageRecord* place = t->node_usage.begin(op_pool)) {
    *place = record;
    t->node_usage.commit();
  }
}

}  // namespace epprof
