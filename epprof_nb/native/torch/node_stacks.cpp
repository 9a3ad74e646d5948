#include "torch/node_stacks.h"

#include "core/launch_log.h"
#include "torch/engine.h"

namespace epprof::torch {
namespace {

struct ForwardRecord {
  uint64_t thread, number;
  uint32_t stack, creates;
};

struct BackwardRecord {
  uint64_t correlation, thread, number;
  uint32_t is_own, is_view;
};

struct NodeLog final : ThreadExtra {
  SpscLog<ForwardRecord> forward;
  SpscLog<BackwardRecord> backward;

  // The last entry of the logging thread.
  uint64_t session = 0;
  uint64_t newest = kNoNumber;
  uint64_t task = kNoTask;
  Node numbered{};
  uint32_t is_view = 0;

  ~NodeLog() override {
    forward.release_all(launch_pool);
    backward.release_all(launch_pool);
  }
};

void on_forward(ThreadState* t, uint32_t stack) {
  uint64_t next = next_number();
  if (!next) return;
  NodeLog& log = t->autograd.made<NodeLog>();
  // The first launch after the creation of a node counts. Inference creates none.
  uint64_t session = call_session.load(std::memory_order_relaxed);
  if (log.newest == next - 1 && log.session == session) return;
  bool creates = gradients_enabled();
  // A node that runs on the thread of the pass. If it creates nodes, it computes a part of the
  // forward pass again, which was not kept.
  if (current_task() != kNoTask && !creates) return;
  if (ForwardRecord* record = log.forward.begin(launch_pool)) {
    *record = {thread_number(), next - 1, stack, creates};
    log.forward.commit();
    log.newest = next - 1;
    log.session = session;
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
    log.is_view = is_of_view(node);
    log.task = task;
  } else if (log.task != task || task == kNoTask) {
    return;
  }
  if (BackwardRecord* record = log.backward.begin(launch_pool)) {
    *record = {correlation, log.numbered.thread, log.numbered.number, is_own,
               log.is_view};
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
    std::vector<uint32_t> forward_stack, forward_creates;
    std::vector<uint64_t> correlation, backward_thread, backward_number;
    std::vector<uint32_t> is_own, is_view;
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
          all.forward_creates.push_back(r.creates);
        });
        log->backward.consume(launch_pool, [&](const BackwardRecord& r) {
          all.correlation.push_back(r.correlation);
          all.backward_thread.push_back(r.thread);
          all.backward_number.push_back(r.number);
          all.is_own.push_back(r.is_own);
          all.is_view.push_back(r.is_view);
        });
      },
      &all);
  auto* columns = new Columns;
  columns->add("forward_thread", std::move(all.forward_thread));
  columns->add("forward_number", std::move(all.forward_number));
  columns->add("forward_stack", std::move(all.forward_stack));
  columns->add("forward_creates", std::move(all.forward_creates));
  columns->add("backward_correlation", std::move(all.correlation));
  columns->add("backward_thread", std::move(all.backward_thread));
  columns->add("backward_number", std::move(all.backward_number));
  columns->add("backward_is_own", std::move(all.is_own));
  columns->add("backward_is_view", std::move(all.is_view));
  return columns;
}

}  // namespace epprof::torch
