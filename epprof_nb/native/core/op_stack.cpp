#include "core/op_stack.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "core/cell_log.h"
#include "core/clock.h"
#include "core/fork.h"
#include "core/mirrored_ids.h"
#include "core/statements.h"
#include "core/suspended_ops.h"

namespace epprof {

std::atomic<bool> recording_ops{false};

namespace {

ResetInChild reset([] { recording_ops = false; });

std::atomic<uint64_t> id_blocks{1};
constexpr uint64_t kIdsPerBlock = 4096;

void set_top(ThreadState* t, uint64_t op) {
  bool changes = t->top_op.load(std::memory_order_relaxed) != op;
  t->top_op = op;
  if (changes && logged_thread.load(std::memory_order_relaxed) == t) log_cell_top(op);
}

bool grow_stack(ThreadState* t) {
  if (t->capacity >= kMaxEntries) return false;
  auto* larger = static_cast<Entry*>(realloc(t->stack, t->capacity * 2 * sizeof(Entry)));
  if (!larger) return false;
  t->stack = larger;
  t->capacity *= 2;
  return true;
}

// Opens an op or a scope. Work inside an op without a row is attributed to the op around it.
void open_entry(ThreadState* t, Entry& entry) {
  if (t->depth >= kMaxDepth && entry.kind == EntryKind::op) {
    entry.lost = true;
    t->ops.lost++;
  }
  push_entry(t, entry);
}

void pop_top(ThreadState* t, int64_t now) {
  Entry& entry = t->stack[t->depth - 1];
  close_entry(t, entry, now);
  t->depth--;
  refresh_top(t);
  if (entry.has_row()) id_popped(t);
}

// Ends the entry at `index`. Entries above it stay open.
void remove_entry(ThreadState* t, uint32_t index, int64_t now) {
  if (index + 1 == t->depth) {
    pop_top(t, now);
    return;
  }
  close_entry(t, t->stack[index], now);
  pop_ids(t, index);
  memmove(&t->stack[index], &t->stack[index + 1], (t->depth - index - 1) * sizeof(Entry));
  t->depth--;
  push_ids(t, index);
  refresh_top(t);
}

bool is_inside(uint32_t key, uint32_t ancestor) {
  for (int64_t k = key; k >= 0;) {
    const Statement* s = statement(uint32_t(k));
    k = s ? s->parent : -1;
    if (k == int64_t(ancestor)) return true;
  }
  return false;
}

// Whether the entry cannot outlive the statement or function that contains it. An exception may leave
// such an entry open.
bool ends_with_caller(const Entry& entry) {
  return entry.kind == EntryKind::statement || entry.category == kFrameworkCall;
}

// Ends the statements and calls inside the op at `index` that an exception left open. Statements that
// follow the op's own statement stay open.
void close_statements_inside(ThreadState* t, uint32_t index, int64_t now) {
  int64_t opener = -1;
  for (uint32_t i = index; i-- > 0;) {
    if (t->stack[i].kind == EntryKind::scope) break;
    if (t->stack[i].kind == EntryKind::statement) {
      opener = t->stack[i].payload_id;
      break;
    }
  }
  while (t->depth > index + 1) {
    const Entry& top = t->stack[t->depth - 1];
    if (!ends_with_caller(top)) return;
    bool is_statement = top.kind == EntryKind::statement;
    if (is_statement && opener >= 0 && !is_inside(top.payload_id, uint32_t(opener))) return;
    pop_top(t, now);
  }
}

bool pop_at(ThreadState* t, uint32_t index) {
  int64_t now = ep_now_ns();
  if (index + 1 < t->depth) close_statements_inside(t, index, now);
  remove_entry(t, index, now);
  return true;
}

template <typename Match>
bool pop_where(Match match) {
  ThreadState* t = stack_thread();
  if (!t) return false;
  {
    StackLockGuard stack_lock(t);
    if (t->untracked) {
      t->untracked--;
      return true;
    }
    for (uint32_t i = t->depth; i-- > 0;) {
      if (t->stack[i].kind == EntryKind::op && match(t->stack[i])) return pop_at(t, i);
    }
  }
  return close_suspended(t, match);
}

void push_statement(ThreadState* t, uint32_t key, uint32_t name, int64_t now) {
  Entry entry{};
  entry.kind = EntryKind::statement;
  entry.category = kStatement;
  entry.payload_id = key;
  entry.name = name;
  entry.start = now;
  entry.parent = t->top_op;
  entry.frame = t->depth ? t->stack[t->depth - 1].frame : 0;
  bool too_deep = t->depth >= kMaxDepth;
  uint32_t at = too_deep ? CoalescedStatements::kNone
                         : t->coalesced.find_or_add(entry.parent, key);
  if (at == CoalescedStatements::kNone) {
    t->ops.lost++;
    push_entry(t, entry);
    return;
  }
  CoalescedStatement& row = t->coalesced.rows[at];
  if (!row.op_id && row.seen < limits.statement_repeats &&
      t->statement_rows < limits.statement_rows) {
    row.seen++;
    t->statement_rows++;
    entry.op_id = new_op_id(t);
  } else {
    if (!row.op_id) row.op_id = new_op_id(t);
    entry.op_id = row.op_id;
    entry.statement_row = at + 1;
  }
  push_entry(t, entry);
}

uint64_t open_op(ThreadState* t, Entry& entry) {
  entry.kind = EntryKind::op;
  entry.op_id = new_op_id(t);
  entry.start = ep_now_ns();
  open_entry(t, entry);
  return entry.op_id;
}

// Index of the topmost entry of `owner`, with `tag` if that is given. UINT32_MAX: none.
uint32_t find_open_event(const ThreadState* t, const void* owner, const uint32_t* tag) {
  for (uint32_t i = t->depth; i-- > 0;) {
    const Entry& entry = t->stack[i];
    if (entry.owner == owner && (!tag || entry.payload_id == *tag)) return i;
  }
  return UINT32_MAX;
}

}  // namespace

uint64_t new_op_id(ThreadState* t) {
  if (t->next_id == t->last_id) {
    uint64_t block = id_blocks.fetch_add(1, std::memory_order_relaxed);
    t->next_id = (block - 1) * kIdsPerBlock + 1;  // 0 is no op
    t->last_id = block * kIdsPerBlock + 1;
  }
  return t->next_id++;
}

uint64_t reserve_op_ids(uint64_t count) {
  uint64_t blocks = (count + kIdsPerBlock - 1) / kIdsPerBlock;
  return (id_blocks.fetch_add(blocks, std::memory_order_relaxed) - 1) * kIdsPerBlock + 1;
}

void push_entry(ThreadState* t, const Entry& entry) {
  if (t->depth == t->capacity && !grow_stack(t)) {
    t->untracked += entry.kind == EntryKind::op;
    return;
  }
  t->stack[t->depth++] = entry;
  if (entry.has_row()) {
    set_top(t, entry.op_id);
    id_pushed(t, entry.op_id);
  }
}

void refresh_top(ThreadState* t) {
  for (uint32_t i = t->depth; i-- > 0;) {
    if (t->stack[i].has_row()) {
      set_top(t, t->stack[i].op_id);
      return;
    }
  }
  set_top(t, 0);
}

void close_entry(ThreadState* t, const Entry& entry, int64_t now) {
  if (!entry.has_row()) return;
  int64_t duration = entry.duration_until(now);
  if (entry.statement_row && entry.statement_row != kOtherThreadRow) {
    // Rows of an earlier session are gone: a generator may be resumed while the next one starts.
    if (entry.statement_row > t->coalesced.rows.size()) return;
    CoalescedStatement& row = t->coalesced.rows[entry.statement_row - 1];
    if (!row.count || entry.start < row.first_start) row.first_start = entry.start;
    row.last_end = now;
    row.duration += duration;
    row.suspended += entry.suspended;
    row.count++;
    return;
  }
  if (OpRecord* record = t->ops.begin(op_pool)) {
    uint16_t flags = entry.statement_row ? kOpCoalesced : 0;
    *record = {entry.op_id,     entry.parent, entry.start, now,            duration,
               entry.suspended, entry.name,   entry.payload_id,  1, entry.category, flags};
    t->ops.commit();
  }
}

ThreadState* stack_thread() {
  if (!recording_ops.load(std::memory_order_relaxed)) return nullptr;
  ThreadState* t = this_thread();
  uint64_t now = epoch.load(std::memory_order_relaxed);
  if (t && t->epoch != now) clear_stack(t, now);
  return t;
}

void clear_stack(ThreadState* t, uint64_t new_epoch) {
  StackLockGuard stack_lock(t);
  t->epoch = new_epoch;
  t->depth = t->untracked = t->statement_rows = 0;
  t->ids_are_stale = true;
  set_top(t, 0);
  t->last_event_end = 0;
  t->coalesced.clear();
  if (t->capacity == kMaxDepth) return;
  auto* smaller = static_cast<Entry*>(realloc(t->stack, kMaxDepth * sizeof(Entry)));
  if (!smaller) return;
  t->stack = smaller;
  t->capacity = kMaxDepth;
}

uint64_t push_op(uint32_t name, uint16_t category, uint32_t payload_id, const void* owner,
                 uint64_t frame) {
  ThreadState* t = stack_thread();
  if (!t) return 0;
  StackLockGuard stack_lock(t);
  Entry entry{};
  entry.category = category;
  entry.payload_id = payload_id;
  entry.name = name;
  entry.owner = owner;
  entry.parent = t->top_op;
  entry.frame = frame;
  return open_op(t, entry);
}

uint64_t push_worker_op(uint32_t name, uint16_t category, uint32_t payload_id, uint64_t parent) {
  ThreadState* t = stack_thread();
  if (!t) return 0;
  StackLockGuard stack_lock(t);
  Entry entry{};
  entry.category = category;
  entry.payload_id = payload_id;
  entry.name = name;
  entry.parent = t->top_op ? t->top_op.load() : parent;
  return open_op(t, entry);
}

uint64_t push_operator(uint32_t name, uint16_t category, uint32_t payload_id, int64_t sequence,
                       uint64_t parent, bool is_worker) {
  ThreadState* t = stack_thread();
  if (!t || (is_worker && !t->top_op && !parent)) return 0;
  StackLockGuard stack_lock(t);
  Entry entry{};
  entry.category = category;
  entry.payload_id = payload_id;
  entry.name = name;
  entry.suspended = sequence;
  entry.parent = t->top_op || !is_worker ? t->top_op.load() : parent;
  return open_op(t, entry);
}

bool pop_op(uint64_t op_id) {
  return pop_where([op_id](const Entry& entry) { return entry.op_id == op_id; });
}

bool pop_op_of_any_thread(uint64_t op_id) {
  if (pop_op(op_id)) return true;
  if (!recording_ops.load(std::memory_order_relaxed)) return false;
  struct Search {
    uint64_t op_id;
    bool found;
  } search{op_id, false};
  for_each_thread(
      [](ThreadState* t, void* data) {
        auto* wanted = static_cast<Search*>(data);
        StackLockGuard stack_lock(t);
        if (t->epoch != epoch.load(std::memory_order_relaxed)) return;
        for (uint32_t i = t->depth; i-- > 0 && !wanted->found;) {
          if (t->stack[i].op_id == wanted->op_id && t->stack[i].kind == EntryKind::op) {
            wanted->found = pop_at(t, i);
          }
        }
      },
      &search);
  return search.found;
}

bool pop_owner(const void* owner) {
  return pop_where([owner](const Entry& entry) { return entry.owner == owner; });
}

uint64_t top_op() {
  ThreadState* t = stack_thread();
  return t ? t->top_op.load(std::memory_order_relaxed) : 0;
}

uint64_t push_event(const void* owner, uint32_t tag, uint64_t parent, uint32_t name,
                    uint16_t category) {
  ThreadState* t = stack_thread();
  if (!t) return 0;
  StackLockGuard stack_lock(t);
  Entry entry{};
  entry.category = category;
  entry.name = name;
  entry.payload_id = tag;
  entry.owner = owner;
  bool use_parent = parent && find_open_event(t, owner, nullptr) == UINT32_MAX;
  entry.parent = use_parent ? parent : t->top_op.load();
  return open_op(t, entry);
}

bool is_event_open(const void* owner, uint32_t tag) {
  ThreadState* t = stack_thread();
  return t && find_open_event(t, owner, &tag) != UINT32_MAX;
}

uint64_t end_event(const void* owner, uint32_t tag, const EventEnd& end) {
  ThreadState* t = stack_thread();
  if (!t) return 0;
  StackLockGuard stack_lock(t);
  uint32_t index = find_open_event(t, owner, &tag);
  if (index == UINT32_MAX) return 0;
  // The owner's events nest, so an error has left those above without an end.
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

void log_node_usage(const NodeUsageRecord& record) {
  ThreadState* t = stack_thread();
  if (!t) return;
  if (NodeUsageRecord* place = t->node_usage.begin(op_pool)) {
    *place = record;
    t->node_usage.commit();
  }
}

void begin_statement(uint32_t key) {
  ThreadState* t = stack_thread();
  const Statement* s = t ? statement(key) : nullptr;
  if (!s) return;
  StackLockGuard stack_lock(t);
  int64_t now = ep_now_ns();
  while (t->depth) {
    const Entry& top = t->stack[t->depth - 1];
    if (!ends_with_caller(top)) break;
    if (top.kind == EntryKind::statement && int64_t(top.payload_id) == s->parent) break;
    pop_top(t, now);
  }
  push_statement(t, key, s->name, now);
}

void return_to_statement(uint32_t key) {
  ThreadState* t = stack_thread();
  if (!t) return;
  StackLockGuard stack_lock(t);
  int64_t now = ep_now_ns();
  while (t->depth) {
    const Entry& top = t->stack[t->depth - 1];
    if (!ends_with_caller(top)) break;
    if (top.kind == EntryKind::statement && top.payload_id == key) break;
    pop_top(t, now);
  }
}

void enter_scope(uint32_t key, uint64_t frame) {
  ThreadState* t = stack_thread();
  if (!t) return;
  StackLockGuard stack_lock(t);
  Entry entry{};
  entry.kind = EntryKind::scope;
  entry.payload_id = key;
  entry.frame = frame;
  push_entry(t, entry);
}

void leave_scope(uint32_t key, uint64_t frame) {
  ThreadState* t = stack_thread();
  if (!t) return;
  StackLockGuard stack_lock(t);
  uint32_t scope = t->depth;
  for (uint32_t i = t->depth; i-- > 0;) {
    if (t->stack[i].kind == EntryKind::scope && t->stack[i].payload_id == key &&
        t->stack[i].frame == frame) {
      scope = i;
      break;
    }
  }
  if (scope == t->depth) return;  // entered before recording started
  int64_t now = ep_now_ns();
  auto ends_here = [](const Entry& entry) {
    return entry.kind != EntryKind::op || ends_with_caller(entry);
  };
  while (t->depth > scope + 1 && ends_here(t->stack[t->depth - 1])) pop_top(t, now);
  // Other ops above the scope were not closed by the function: they outlive it.
  for (uint32_t i = t->depth; i-- > scope;) {
    if (ends_here(t->stack[i])) remove_entry(t, i, now);
  }
}

}  // namespace epprof
