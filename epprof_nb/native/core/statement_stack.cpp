#include "core/statement_stack.h"

#include <algorithm>

#include "core/clock.h"
#include "core/stack_entries.h"
#include "core/statements.h"

namespace epprof {
namespace {

// Read on first use: many markers end and begin nothing.
struct Now {
  int64_t ns = 0;

  operator int64_t() { return ns ? ns : ns = epprof_now_ns(); }
};

void pop(ThreadState* t, Now& now) {
  pop_top(t, t->stack[t->depth - 1].has_row() ? int64_t(now) : 0);
}

constexpr uint32_t kMaxSearch = 64;  // entries between a call and the call of its function around it

bool recurs(const ThreadState* t) { return t->depth && t->stack[t->depth - 1].recurs; }

bool is_call_open(const ThreadState* t, uint32_t key) {
  uint32_t last = t->depth - std::min(t->depth, kMaxSearch);
  for (uint32_t i = t->depth; i-- > last;) {
    if (t->stack[i].kind == EntryKind::scope && t->stack[i].payload_id == key) return true;
  }
  return false;
}

bool may_record_recursion(ThreadState* t) {
  if (t->depth < kMaxDepth) return t->recursion.take();
  t->recursion.unmarked++;
  return false;
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
    t->statement_rows++;
    entry.op_id = new_op_id(t);
    // Later ones have the same, mostly. Each recursive call would have a longer one.
    if (row.seen++ == 0 && !recurs(t)) note_stack(t, entry.op_id);
  } else {
    if (!row.op_id) row.op_id = new_op_id(t);
    entry.op_id = row.op_id;
    entry.statement_row = at + 1;
  }
  push_entry(t, entry);
}

// The next turn of a loop whose body is the statement on top: the same as its end and its begin, if
// its executions share a row.
bool repeats_statement(ThreadState* t, uint32_t key, Now& now) {
  if (t->depth < 2) return false;
  Entry& top = t->stack[t->depth - 1];
  const Entry& around = t->stack[t->depth - 2];
  if (top.kind != EntryKind::statement || top.payload_id != key) return false;
  if (!around.has_row() || around.op_id != top.parent || around.frame != top.frame) return false;
  uint32_t row = top.statement_row - 1;  // 0, of a row of its own, is out of range, too
  if (row >= t->coalesced.rows.size() || t->coalesced.rows[row].op_id != top.op_id) return false;
  close_entry(t, top, now);
  top.start = now;
  top.suspended = top.suspended_at = 0;
  return true;
}

}  // namespace

void begin_statement(uint32_t key) {
  ThreadState* t = stack_thread();
  const Statement* s = t ? statement(key) : nullptr;
  if (!s) return;
  StackLockGuard stack_lock(t);
  Now now;
  if (repeats_statement(t, key, now)) return;
  while (t->depth) {
    const Entry& top = t->stack[t->depth - 1];
    if (!ends_with_caller(top)) break;
    if (top.kind == EntryKind::statement && int64_t(top.payload_id) == s->parent) break;
    pop(t, now);
  }
  if (recurs(t) && !may_record_recursion(t)) return;
  push_statement(t, key, s->name, now);
}

void return_to_statement(uint32_t key) {
  ThreadState* t = stack_thread();
  if (!t) return;
  StackLockGuard stack_lock(t);
  Now now;
  while (t->depth) {
    const Entry& top = t->stack[t->depth - 1];
    if (!ends_with_caller(top)) break;
    if (top.kind == EntryKind::statement && top.payload_id == key) break;
    pop(t, now);
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
  entry.recurs = recurs(t) || is_call_open(t, key);
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
  Now now;
  auto ends_here = [](const Entry& entry) {
    return entry.kind != EntryKind::op || ends_with_caller(entry);
  };
  while (t->depth > scope + 1 && ends_here(t->stack[t->depth - 1])) pop(t, now);
  if (t->depth == scope + 1) return pop(t, now);
  // The function did not close other ops above the scope, so they outlive it.
  for (uint32_t i = t->depth; i-- > scope;) {
    if (ends_here(t->stack[i])) remove_entry(t, i, now);
  }
}

}  // namespace epprof
