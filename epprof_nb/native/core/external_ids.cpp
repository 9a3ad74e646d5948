#include "core/external_ids.h"

#include "core/fork.h"

namespace epprof {
namespace {

void (*on_push)(uint64_t) = nullptr;
void (*on_pop)() = nullptr;
std::atomic<uint64_t> mirrors{0};  // incremented by each call of mirror_ids

ResetInChild reset_external_ids([] {
  on_push = nullptr;
  on_pop = nullptr;
});

// Whether the ids match the stack before the current change.
bool are_current(ThreadState* t) {
  uint64_t mirror = mirrors.load(std::memory_order_relaxed);
  if (t->ids_mirror != mirror) {
    t->ids_mirror = mirror;
    t->ids_are_stale = true;
  }
  if (t != this_thread()) t->ids_are_stale = true;
  return !t->ids_are_stale;
}

void push(ThreadState* t, uint64_t op_id) {
  on_push(op_id);
  t->ids++;
}

void pop(ThreadState* t) {
  on_pop();
  t->ids--;
}

// Makes the ids match the stack, if this is its own thread.
void refresh(ThreadState* t) {
  if (t != this_thread()) return;
  while (t->ids) pop(t);
  t->ids_are_stale = false;
  for (uint32_t i = 0; i < t->depth; i++) {
    if (t->stack[i].has_row()) push(t, t->stack[i].op_id);
  }
}

}  // namespace

void mirror_ids(void (*push_id)(uint64_t), void (*pop_id)()) {
  on_push = push_id;
  on_pop = pop_id;
  mirrors++;
}

void id_pushed(ThreadState* t, uint64_t op_id) {
  if (!on_push) return;
  if (are_current(t)) {
    push(t, op_id);
  } else {
    refresh(t);
  }
}

void id_popped(ThreadState* t) {
  if (!on_pop) return;
  if (are_current(t)) {
    pop(t);
  } else {
    refresh(t);
  }
}

void pop_ids(ThreadState* t, uint32_t from) {
  if (!on_pop || !are_current(t)) return;
  for (uint32_t i = from; i < t->depth; i++) {
    if (t->stack[i].has_row()) pop(t);
  }
}

void push_ids(ThreadState* t, uint32_t from) {
  if (!on_push) return;
  if (!are_current(t)) {
    refresh(t);
    return;
  }
  for (uint32_t i = from; i < t->depth; i++) {
    if (t->stack[i].has_row()) push(t, t->stack[i].op_id);
  }
}

}  // namespace epprof
