#include "torch/backward.h"

#include <algorithm>
#include <array>
#include <functional>

#include "core/clock.h"
#include "core/fork.h"
#include "core/op_stack.h"
#include "core/records.h"
#include "torch/engine.h"

namespace epprof::torch {
namespace {

struct Pass {
  std::atomic<uint64_t> op{0};  // 0: ended
  std::atomic<uint64_t> task{kNoTask};  // PyTorch's number, known after the first node
  std::atomic<uint64_t> nodes{0}, unlinked{0};
  std::atomic<uint64_t> serial{0};  // order of the start of passes; 0: not in use
  std::atomic<uint64_t> thread{0};  // PyTorch's number of the thread that began it
  std::atomic<bool> follow{false};
  std::atomic<bool> is_nested{false};  // in all passes that were running when it began
};

constexpr size_t kPasses = 128;  // passes at once; further ones get no ops of modules
constexpr size_t kDepth = 128;   // nesting of modules; the outermost ones get no op
constexpr size_t kSeen = 256;    // nodes to search for the producer of a gradient
constexpr size_t kTasks = 4;     // passes that a thread executes in turn
constexpr size_t kEdges = 4000;  // maximum number that such a search follows

std::array<Pass, kPasses> passes;
uint64_t last_serial = 0;  // guarded by the GIL
std::atomic<uint64_t> changes{1};  // of the passes
std::atomic<size_t> used_passes{0};  // later elements of `passes` were never used
size_t followed = 0;  // passes in progress; guarded by the GIL

ResetInChild reset_passes([] { forget_passes(); });

// The last nodes that a thread executed in one backward pass.
struct Seen {
  uint64_t used = 0;  // order of last use among the thread's passes
  uint64_t changes = 0;  // of the passes
  uint64_t task = kNoTask;
  Node node{};  // executed now
  CallId call = kNoCall;
  uint64_t stack_changes = 0;
  size_t count = 0;  // of nodes with a number
  std::array<Node, kSeen> nodes{};
};

// A node that accumulates a gradient has no number. It follows the node that produced the gradient,
// which may not have been seen. Searches `node` and up to `unseen` consecutive nodes after it.
bool find_producer(const Node& node, const unsigned char* leaf, size_t unseen, size_t* edges,
                   Node* producer) {
  size_t count = edge_count(node.address);
  for (size_t i = 0; i < count && *edges; i++) {
    --*edges;
    Node next;
    if (!next_node(node.address, i, &next)) continue;
    if (next.address == leaf) {
      *producer = node;
      return true;
    }
    if (unseen && next.number != kNoNumber &&
        find_producer(next, leaf, unseen - 1, edges, producer)) {
      return true;
    }
  }
  return false;
}

CallId call_of_leaf(const Seen& seen, const unsigned char* leaf) {
  // Number of recent nodes to search.
  constexpr struct {
    size_t nodes, unseen;
  } kSearches[] = {{8, 2}, {kSeen, 1}, {16, 4}};
  size_t edges = kEdges;
  for (const auto& search : kSearches) {
    for (size_t i = 1; i <= std::min(seen.count, search.nodes); i++) {
      const Node& node = seen.nodes[(seen.count - i) % kSeen];  // exists: its pass holds the graph
      Node producer;
      if (find_producer(node, leaf, search.unseen, &edges, &producer)) {
        return call_of_node(producer.thread, producer.number);
      }
    }
  }
  return kUnknownCall;
}

// A pass, and whether it certainly executes the node.
struct Found {
  Pass* pass;
  bool is_sure;
};

// The pass of a task. The first node of a pass gives PyTorch's number of the pass.
Found pass_of_task(uint64_t task, const Node& node) {
  Pass *newest = nullptr, *of_thread = nullptr;  // of an unknown task
  bool is_nested = true;
  size_t unknown = 0, count = used_passes.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; i++) {
    Pass& pass = passes[i];
    if (!pass.op.load(std::memory_order_acquire)) continue;
    uint64_t known = pass.task.load(std::memory_order_relaxed);
    if (known == task) return {&pass, true};
    if (known != kNoTask) continue;
    unknown++;
    is_nested &= pass.is_nested;
    if (!newest || pass.serial > newest->serial) newest = &pass;
    if (pass.thread != node.thread) continue;
    if (!of_thread || pass.serial > of_thread->serial) of_thread = &pass;
  }
  // A thread waits for its pass, so the innermost of a thread's passes, or of nested passes, runs.
  // If threads run passes at once, each has usually created its own nodes.
  Pass* found = of_thread ? of_thread : newest;
  bool is_sure = of_thread || unknown == 1 || is_nested;
  if (found && is_sure) found->task.store(task, std::memory_order_relaxed);
  return {found, is_sure};
}

bool is_pass(const void* owner) {
  auto* pass = static_cast<const Pass*>(owner);
  return !std::less<>()(pass, passes.data()) && std::less<>()(pass, passes.data() + kPasses);
}

// Opens the ops of a call and of the calls around it, with the stack locked. `first`: index of the
// first op of calls in the stack. The parent of the outermost op is the pass, if that is certain.
void open_calls(ThreadState* t, uint32_t first, Found found, CallId call) {
  Pass* pass = found.pass;
  std::array<CallId, kDepth> wanted;
  size_t count = 0;
  for (CallId c = call; c != kNoCall && c != kUnknownCall && count < kDepth; c = outer_call(c)) {
    wanted[count++] = c;
  }
  std::reverse(wanted.begin(), wanted.begin() + count);
  size_t same = 0;
  while (same < count && first + same < t->depth && t->stack[first + same].key == wanted[same] &&
         t->stack[first + same].owner == pass) {
    same++;
  }
  int64_t now = first + same < t->depth ? epprof_now_ns() : 0;
  while (t->depth > first + same) pop_top(t, now);
  for (; same < count; same++) {
    CallOp op;
    if (!op_of_call(wanted[same], &op)) continue;
    Entry entry = op_entry(op.name, kFrameworkCall, op.kind);
    entry.owner = pass;
    entry.key = wanted[same];
    uint64_t top = t->top_op.load(std::memory_order_relaxed);
    uint64_t parent = found.is_sure ? pass->op.load(std::memory_order_relaxed) : 0;
    entry.parent = top ? top : parent;
    open_op(t, entry);
  }
}

// Index of the first op of calls at the top of the stack.
uint32_t first_call(const ThreadState* t) {
  uint32_t first = t->depth;
  while (first && t->stack[first - 1].key && is_pass(t->stack[first - 1].owner)) first--;
  return first;
}

// The passes that a thread executes in turn, because several threads share one autograd thread.
struct SeenTasks {
  std::array<Seen, kTasks> tasks;
  uint64_t uses = 0;
  const Seen* last = nullptr;

  Seen& of(uint64_t task) {
    auto found = std::find_if(tasks.begin(), tasks.end(),
                              [=](const Seen& seen) { return seen.task == task; });
    if (found == tasks.end() || task == kNoTask) {
      // Do not read nodes of other passes again, because they may no longer exist.
      found = std::min_element(tasks.begin(), tasks.end(),
                               [](const Seen& a, const Seen& b) { return a.used < b.used; });
      found->task = task;
      found->node = {};
      found->count = 0;
    }
    found->used = ++uses;
    return *found;
  }
};

// Whether the thread executes a different node of this pass than at its last call. `now`: the
// changes of the passes, after which the calls may belong to another recording.
bool see_node(Seen& seen, const Node& node, uint64_t now) {
  bool is_new = seen.node.address != node.address || seen.node.number != node.number;
  if (!is_new && seen.changes == now) return false;
  seen.node = node;
  seen.changes = now;
  if (node.number == kNoNumber) {
    seen.call = call_of_leaf(seen, node.address);
  } else {
    seen.call = call_of_node(node.thread, node.number);
    if (is_new) seen.nodes[seen.count++ % kSeen] = node;
  }
  return is_new;
}

void follow(ThreadState* t) {
  thread_local SeenTasks tasks;
  Node node;
  if (!recording_ops.load(std::memory_order_relaxed)) return;
  if (!torch::current_node(&node)) return;
  uint64_t now = changes.load(std::memory_order_acquire);
  Seen& seen = tasks.of(current_task());
  bool is_same = tasks.last == &seen && seen.changes == now;
  bool is_new = see_node(seen, node, now);
  is_same &= !is_new;
  tasks.last = &seen;
  if (is_same && seen.stack_changes == t->stack_changes.load(std::memory_order_relaxed)) return;
  renew_stack(t);
  StackLockGuard stack_lock(t);
  seen.stack_changes = t->stack_changes.load(std::memory_order_relaxed);
  uint32_t first = first_call(t);
  Found found{nullptr, true};
  if (!first) {
    found = pass_of_task(seen.task, node);
  } else if (is_pass(t->stack[first - 1].owner)) {
    found.pass = static_cast<Pass*>(const_cast<void*>(t->stack[first - 1].owner));
  }  // otherwise the node has opened an op
  Pass* pass = found.pass;
  if (!pass || !pass->follow || !pass->op.load(std::memory_order_relaxed)) return;
  bool is_unknown = seen.call == kUnknownCall;
  if (is_new && (node.number != kNoNumber || is_unknown)) {
    pass->nodes.fetch_add(1, std::memory_order_relaxed);
    pass->unlinked.fetch_add(is_unknown, std::memory_order_relaxed);
  }
  open_calls(t, first, found, seen.call);
}

Pass* pass_of_number(uint64_t serial) {
  auto found = std::find_if(passes.begin(), passes.end(),
                            [=](const Pass& pass) { return pass.serial == serial; });
  return found == passes.end() ? nullptr : &*found;
}

// Ends the ops of its module calls on all threads.
void end_calls(const Pass* pass) {
  for_each_thread(
      [](ThreadState* t, void* ended) {
        StackLockGuard stack_lock(t);
        if (t->epoch != epoch.load(std::memory_order_relaxed)) return;
        int64_t now = 0;
        for (uint32_t i = t->depth; i-- > 0;) {
          if (t->stack[i].owner != ended || !t->stack[i].key) continue;
          if (!now) now = epprof_now_ns();
          remove_entry(t, i, now);
        }
      },
      const_cast<Pass*>(pass));
}

}  // namespace

uint64_t begin_pass(uint32_t name, uint32_t kind, bool follows, uint64_t* op) {
  bool is_nested = current_task() != kNoTask || !runs_pass();
  Pass* pass = pass_of_number(0);
  *op = push_op(name, kFrameworkCall, kind, pass, 0);
  uint64_t serial = ++last_serial;
  if (!pass) return serial;
  pass->task = kNoTask;
  pass->thread = thread_number();
  pass->nodes = pass->unlinked = 0;
  pass->follow = follows;
  pass->is_nested = is_nested;
  pass->serial = serial;
  size_t used = size_t(pass - passes.data()) + 1;
  if (used > used_passes.load()) used_passes = used;
  pass->op.store(*op, std::memory_order_release);
  changes++;
  if (follows && ++followed == 1) update_stack = follow;
  return serial;
}

PassCounts end_pass(uint64_t serial) {
  Pass* pass = pass_of_number(serial);
  if (!pass) return {};
  pass->op = 0;
  changes++;
  end_calls(pass);
  if (pass->follow && --followed == 0) update_stack = nullptr;
  pass->serial = 0;
  return {pass->nodes.load(), pass->unlinked.load()};
}

void forget_passes() {
  update_stack = nullptr;
  followed = 0;
  changes++;
  for (Pass& pass : passes) {
    pass.op = 0;
    pass.serial = 0;
  }
}

bool runs_pass() {
  return std::any_of(passes.begin(), passes.begin() + used_passes.load(),
                     [](const Pass& pass) { return pass.serial != 0; });
}

void switch_calls(uint64_t serial, CallId call) {
  Pass* pass = pass_of_number(serial);
  ThreadState* t = stack_thread();
  if (!t || !pass || !pass->op.load()) return;
  StackLockGuard stack_lock(t);
  uint32_t first = first_call(t);
  if (first && !is_pass(t->stack[first - 1].owner)) return;
  open_calls(t, first, {pass, true}, call);
}

}  // namespace epprof::torch
