#include "core/op_stack.h"

#include "core/clock.h"
#include "core/greenlets.h"
#include "core/statements.h"
#include "core/suspended_ops.h"

namespace epprof {
namespace {

bool is_inside(uint32_t key, uint32_t ancestor) {
  for (int64_t k = key; k >= 0;) {
    const Statement* s = statement(uint32_t(k));
    k = s ? s->parent : -1;
    if (k == int64_t(ancestor)) return true;
  }
  return false;
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
  int64_t now = epprof_now_ns();
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
    if (close_waiting(t, match)) return true;
  }
  return close_suspended(t, match);
}

}  // namespace

uint64_t push_op(uint32_t name, uint16_t category, uint32_t payload_id, const void* owner,
                 uint64_t frame) {
  ThreadState* t = stack_thread();
  if (!t) return 0;
  StackLockGuard stack_lock(t);
  Entry entry = op_entry(name, category, payload_id);
  entry.owner = owner;
  entry.parent = t->top_op;
  entry.frame = frame;
  return open_op(t, entry);
}

uint64_t push_worker_op(uint32_t name, uint16_t category, uint32_t payload_id, uint64_t parent) {
  ThreadState* t = stack_thread();
  if (!t) return 0;
  StackLockGuard stack_lock(t);
  Entry entry = op_entry(name, category, payload_id);
  entry.parent = t->top_op ? t->top_op.load() : parent;
  return open_op(t, entry);
}

uint64_t push_operator(uint32_t name, uint16_t category, uint32_t payload_id, int64_t sequence,
                       uint64_t parent, bool is_worker) {
  ThreadState* t = stack_thread();
  if (!t || (is_worker && !t->top_op && !parent)) return 0;
  StackLockGuard stack_lock(t);
  Entry entry = op_entry(name, category, payload_id);
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
        if (wanted->found) return;
        wanted->found =
            close_waiting(t, [wanted](const Entry& e) { return e.op_id == wanted->op_id; });
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

}  // namespace epprof
