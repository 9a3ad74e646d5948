// A recorder's stack of op ids holds the ops of the thread's stack in their order, whatever the order
// in which they end and are suspended. Where another thread ends ops, or while the recorder pauses,
// the ids stay, and are right again after the thread's next change.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "core/api.h"
#include "core/external_ids.h"
#include "core/op_stack.h"

using namespace epprof;

namespace {

std::vector<uint64_t> ids;

void push(uint64_t op) { ids.push_back(op); }
void pop() {
  if (ids.empty()) {
    fprintf(stderr, "an id was popped that was never pushed\n");
    exit(1);
  }
  ids.pop_back();
}

void check(int turn) {
  ThreadState* t = this_thread();
  std::vector<uint64_t> open;
  for (uint32_t i = 0; i < t->depth; i++) {
    if (t->stack[i].has_row()) open.push_back(t->stack[i].op_id);
  }
  if (open == ids) return;
  fprintf(stderr, "turn %d: %zu ids for %zu open ops\n", turn, ids.size(), open.size());
  exit(1);
}

void end_one(std::vector<uint64_t>& ops) {
  if (ops.empty()) return;
  size_t at = size_t(rand()) % ops.size();
  epprof_pop_of_any_thread(ops[at]);
  ops.erase(ops.begin() + long(at));
}

void change(std::vector<uint64_t>& ops) {
  ops.push_back(epprof_push(epprof_intern("op", 2), 0, 0, nullptr, 0));
  check(-1);
}

void end_by_another_thread(std::vector<uint64_t>& ops) {
  std::vector<uint64_t> before = ids;
  std::thread([&] { end_one(ops), end_one(ops); }).join();
  if (ids != before) {
    fprintf(stderr, "another thread changed the ids\n");
    exit(1);
  }
  change(ops);
}

void end_while_paused(std::vector<uint64_t>& ops) {
  mirror_ids(nullptr, nullptr);
  end_one(ops);
  mirror_ids(push, pop);
  change(ops);
}

}  // namespace

int main() {
  epprof_set_limits(32768, 32768, 100000, 1000, 1000000);
  epprof_set_recording(1, 0);
  mirror_ids(push, pop);
  srand(1);
  std::vector<uint64_t> ops;
  int32_t no_parent = -1;
  uint32_t name = epprof_intern("op", 2);
  uint32_t statement = epprof_add_statements(&no_parent, &name, 1);
  for (int turn = 0; turn < 100000; turn++) {
    if (turn % 200 == 0) end_by_another_thread(ops);
    if (turn % 500 == 0) end_while_paused(ops);
    uint64_t frame = uint64_t(rand() % 4);
    switch (rand() % 8) {
      case 0:
        ops.push_back(epprof_push(name, 0, 0, nullptr, frame));
        break;
      case 1:
        ops.push_back(epprof_push_worker(name, 0, 0, 0));
        if (!ops.back()) {
          fprintf(stderr, "an op of a worker was not opened\n");
          return 1;
        }
        break;
      case 2:
      case 3:
        if (ops.empty()) break;
        {
          size_t at = size_t(rand()) % ops.size();
          epprof_pop(ops[at]);
          ops.erase(ops.begin() + long(at));
        }
        break;
      case 4:
        if (frame) epprof_suspend(frame);
        break;
      case 5:
        if (frame) epprof_resume(frame);
        break;
      case 6:
        epprof_enter_scope(statement, frame);
        epprof_begin_statement(statement);
        break;
      case 7:
        epprof_leave_scope(statement, frame);
        break;
    }
    check(turn);
  }
  return 0;
}
