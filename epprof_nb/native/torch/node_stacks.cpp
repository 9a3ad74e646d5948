#include "torch/node_stacks.h"

#include "core/launch_log.h"
#include "torch/engine.h"

namespace epprof::torch {
namespace {

struct ForwardRecord {
  uint64_t thread, number;
  uint32_t stack;
};

struct BackwardRecord {
  uint64_t correlation, thread, number;
  uint32_t is_own;
};

struct NodeLog final : ThreadExtra {
  SpscLog<ForwardRecord> forward;
  SpscLog<BackwardRecord> backward;

  // What was logged last, by the logging thread.
  uint64_t newest = kNoNumber;
  uint32_t stack = kNoStack;
  uint64_t task = kNoTask;
  Node numbered{};

  ~NodeLog() override {
    forward.release_all(launch_pool);
    backward.release_all(launch_pool);
  }
};

void on_forward(ThreadState* t, uint32_t stack) {
  if (current_task() != kNoTask) return;  // a node that runs on the thread of the pass
  uint64_t next = next_number();
  if (!next) return;
  NodeLog& log = t->autograd.made<NodeLog>();
  if (log.newest == next - 1 && log.stack == stack) return;
  if (ForwardRecord* record = log.forward.begin(launch_pool)) {
    *record = {thread_number(), next - 1, stack};
    log.forward.commit();
    log.newest = next - 1;
    log.stack = stack;
  }
}

void on_backward(ThreadState* t, uint64_t correlation) {
  Node node;
  if (!can_read_nodes() || !current_node(&node)) return;
  NodeLog& log = t->autograd.made<NodeLog>();
  uint64_t task = current_task();
  bool is_own = node.number != kNoNumber;
  if (is_own) {
    log.numbered = node;
    log.task = task;
  } else if (log.task != task || task == kNoTask) {
    return;
  }
  if (BackwardRecord* record = log.backward.begin(launch_pool)) {
    *record = {correlation, log.numbered.thread, log.numbered.number, is_own};
    log.backward.commit();
  }
}

void on_launch(ThreadState* t, uint64_t correlation, uint32_t stack) {
  if (!has_numbers()) return;
  stack == kNoStack ? on_backward(t, correlation) : on_forward(t, stack);
}

}  // namespace

void record_node_stacks(bool on) { launch_observer = on ? on_launch : nullptr; }

epprof_columns* drain_node_stacks() {
  struct All {
    std::vector<uint64_t> forward_thread, forward_number;
    std::vector<uint32_t> forward_stack;
    std::vector<uint64_t> correlation, backward_thread, backward_number;
    std::vector<uint32_t> is_own;
  } all;
  for_each_thread(
      [](ThreadState* t, void* data) {
        auto& all = *static_cast<All*>(data);
        auto* log = static_cast<NodeLog*>(t->autograd.get());
        if (!log) return;
        log->forward.consume(launch_pool, [&](const ForwardRecord& r) {
          all.forward_thread.push_back(r.thread);
          all.forward_number.push_back(r.number);
          all.forward_stack.push_back(r.stack);
        });
        log->backward.consume(launch_pool, [&](const BackwardRecord& r) {
          all.correlation.push_back(r.correlation);
          all.backward_thread.push_back(r.thread);
          all.backward_number.push_back(r.number);
          all.is_own.push_back(r.is_own);
        });
      },
      &all);
  auto* columns = new Columns;
  columns->add("forward_thread", std::move(all.forward_thread));
  columns->add("forward_number", std::move(all.forward_number));
  columns->add("forward_stack", std::move(all.forward_stack));
  columns->add("backward_correlation", std::move(all.correlation));
  columns->add("backward_thread", std::move(all.backward_thread));
  columns->add("backward_number", std::move(all.backward_number));
  columns->add("backward_is_own", std::move(all.is_own));
  return columns;
}

}  // namespace epprof::torch
