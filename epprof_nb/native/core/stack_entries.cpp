#include "core/stack_entries.h"

#include <stdlib.h>
#include <string.h>

#include "core/cell_log.h"
#include "core/clock.h"
#include "core/external_ids.h"
#include "core/fork.h"

namespace epprof {

std::atomic<bool> recording_ops{false};
std::atomic<bool> recording_statements{true};
std::atomic<void (*)(ThreadState*)> update_stack{nullptr};

namespace {

ResetInChild reset_entries([] {
  recording_ops = false;
  recording_statements = true;
  update_stack = nullptr;
});

std::atomic<uint64_t> id_blocks{1};
constexpr uint64_t kIdsPerBlock = 4096;

void set_top(ThreadState* t, uint64_t op) {
  bool changes = t->top_op.load(std::memory_order_relaxed) != op;
  t->top_op.store(op, std::memory_order_release);
  if (changes && logged_thread.load(std::memory_order_relaxed) == t) log_cell_top(op);
}

// Nodes, operators and ranges of libraries are many, and have the stack of the op around them.
bool has_own_stack(uint16_t category) {
  return category == kRange || category == kCell || category == kOrtRun ||
         category == kFrameworkCall || category == kFrameworkRange || category == kTask;
}

bool grow_stack(ThreadState* t) {
  if (t->capacity >= kMaxEntries) return false;
  auto* larger = static_cast<Entry*>(realloc(t->stack, t->capacity * 2 * sizeof(Entry)));
  if (!larger) return false;
  t->stack = larger;
  t->capacity *= 2;
  return true;
}

}  // namespace

ThreadState* stack_thread() {
  if (!recording_ops.load(std::memory_order_relaxed)) return nullptr;
  ThreadState* t = this_thread();
  if (!t) return t;
  renew_stack(t);
  if (auto* update = update_stack.load(std::memory_order_relaxed)) update(t);
  return t;
}

void renew_stack(ThreadState* t) {
  uint64_t now = epoch.load(std::memory_order_relaxed);
  if (t->epoch.load(std::memory_order_relaxed) != now) clear_stack(t, now);
}

void clear_stack(ThreadState* t, uint64_t new_epoch) {
  StackLockGuard stack_lock(t);
  t->epoch.store(new_epoch, std::memory_order_relaxed);
  t->depth = t->untracked = t->statement_rows = 0;
  t->ids_are_stale = true;
  t->greenlet = 0;
  t->cell_greenlet = 0;
  t->waiting_op = 0;
  t->waiting.clear();
  set_top(t, 0);
  t->last_event_end = 0;
  t->coalesced.clear();
  t->recursion = {};
  t->short_pauses = {};
  if (t->capacity == kMaxDepth) return;
  auto* smaller = static_cast<Entry*>(realloc(t->stack, kMaxDepth * sizeof(Entry)));
  if (!smaller) return;
  t->stack = smaller;
  t->capacity = kMaxDepth;
}

uint64_t new_op_id(ThreadState* t) {
  if (t->next_id == t->last_id) {
    uint64_t block = id_blocks.fetch_add(1, std::memory_order_relaxed);
    t->next_id = (block - 1) * kIdsPerBlock + 1;  // 0 means no op
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
  Entry& pushed = t->stack[t->depth] = entry;
  if (t->depth++) pushed.recurs |= (&pushed)[-1].recurs;
  if (entry.has_row()) {
    set_top(t, entry.op_id);
    id_pushed(t, entry.op_id);
  }
}

Entry op_entry(uint32_t name, uint16_t category, uint32_t payload_id) {
  Entry entry{};
  entry.name = name;
  entry.category = category;
  entry.payload_id = payload_id;
  return entry;
}

void note_stack(ThreadState* t, uint64_t op) {
  auto* read = read_stack.load(std::memory_order_relaxed);
  uint32_t stack = read ? read(t) : kNoStack;
  if (stack == kNoStack) return;
  if (OpStackRecord* record = t->op_stacks.begin(op_pool)) {
    *record = {op, stack};
    t->op_stacks.commit();
  }
}

uint64_t open_op(ThreadState* t, Entry& entry) {
  entry.kind = EntryKind::op;
  entry.op_id = new_op_id(t);
  entry.start = epprof_now_ns();
  if (t->depth >= kMaxDepth) {  // no row: its work is attributed to the op around it
    entry.lost = true;
    t->ops.lost++;
  }
  if (has_own_stack(entry.category) && !entry.lost) note_stack(t, entry.op_id);
  push_entry(t, entry);
  return entry.op_id;
}

void close_entry(ThreadState* t, const Entry& entry, int64_t now) {
  if (!entry.has_row()) return;
  int64_t duration = entry.duration_until(now);
  if (entry.statement_row && entry.statement_row != kOtherThreadRow) {
    // Rows of an earlier session no longer exist. A generator may resume while the next session
    // starts.
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

void refresh_top(ThreadState* t) {
  for (uint32_t i = t->depth; i-- > 0;) {
    if (t->stack[i].has_row()) {
      set_top(t, t->stack[i].op_id);
      return;
    }
  }
  set_top(t, t->waiting_op);
}

void pop_top(ThreadState* t, int64_t now) {
  Entry& entry = t->stack[t->depth - 1];
  t->depth--;
  if (!entry.has_row()) return;  // the top stays: below may be very many such entries
  close_entry(t, entry, now);
  refresh_top(t);
  id_popped(t);
}

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

bool ends_with_caller(const Entry& entry) {
  return entry.kind == EntryKind::statement || entry.category == kFrameworkCall;
}

}  // namespace epprof
