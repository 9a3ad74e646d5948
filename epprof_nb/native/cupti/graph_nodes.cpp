#include "cupti/graph_nodes.h"

#include <algorithm>
#include <map>
#include <vector>

#include "core/fork.h"
#include "core/records.h"

namespace epprof {
namespace {

struct Nodes {
  std::vector<uint64_t> node, original, op;
  std::vector<int64_t> stack;
};

ForkSafeMutex mutex;  // not in the hot path, because a replay creates no nodes
Nodes& nodes = *new Nodes;

void add(uint64_t node, uint64_t original, uint64_t op = 0, uint32_t stack = kNoStack) {
  ForkLockGuard lock(mutex);
  nodes.node.push_back(node);
  nodes.original.push_back(original);
  nodes.op.push_back(op);
  nodes.stack.push_back(stack == kNoStack ? -1 : int64_t(stack));
}

// The id of a node consists of the id of its graph and its number in the graph.
constexpr int kNumberBits = 32;

uint64_t graph_of(uint64_t node) { return node >> kNumberBits; }
uint64_t number_of(uint64_t node) { return node & ((uint64_t(1) << kNumberBits) - 1); }

// A step of an instantiation: the nodes of a child graph, or of the body of a conditional node,
// become nodes of the executable graph, or the driver adds its own node.
struct Step {
  std::vector<uint64_t> moved;
  uint64_t created = 0;
};

// The graphs that a thread has created since its last instantiation, with their nodes, and the
// steps of the instantiation in progress.
struct Graphs {
  std::map<uint64_t, std::vector<uint64_t>> nodes;
  std::vector<Step> steps;
  bool instantiating = false;
};
thread_local Graphs graphs;

constexpr size_t kMaxGraphs = 10000;  // created by a thread without an instantiation

void note(uint64_t node) {
  if (graphs.instantiating) {
    graphs.steps.push_back({{}, node});
    return;
  }
  if (graphs.nodes.size() >= kMaxGraphs) graphs.nodes.clear();
  std::vector<uint64_t>& known = graphs.nodes[graph_of(node)];
  if (known.empty() || known.back() != node) known.push_back(node);  // created, then cloned
}

// An instantiation that fails may have no end. Cloning precedes the moves of nodes, so a clone
// belongs to a later instantiation.
void forget_failed_instantiation() {
  graphs.instantiating = false;
  for (const Step& step : graphs.steps) {
    if (step.created) note(step.created);
  }
  graphs.steps.clear();
}

}  // namespace

void graph_node_created(uint64_t node, uint64_t op, uint32_t stack) {
  add(node, 0, op, stack);
  note(node);
}

void graph_node_cloned(uint64_t node, uint64_t original) {
  add(node, original);
  if (graphs.instantiating) forget_failed_instantiation();
  note(node);
}

void graph_destroyed(uint64_t graph) {
  auto found = graphs.nodes.find(graph);
  if (found == graphs.nodes.end()) return;
  if (graphs.instantiating) graphs.steps.push_back({std::move(found->second), 0});
  graphs.nodes.erase(found);
}

void instantiation_begins() {
  graphs.instantiating = true;
  graphs.steps.clear();
}

void instantiation_ends(uint64_t graph) {
  std::vector<uint64_t> originals, moved;
  uint64_t next = 0;
  for (uint64_t node : graphs.nodes[graph]) next = std::max(next, number_of(node) + 1);
  bool as_expected = graph != 0;
  for (const Step& step : graphs.steps) {
    for (uint64_t original : step.moved) {
      originals.push_back(original);
      moved.push_back(graph << kNumberBits | next++);
    }
    if (!step.created || graph_of(step.created) != graph) continue;
    as_expected = as_expected && number_of(step.created) == next;
    next = number_of(step.created) + 1;
  }
  // Another driver version may number nodes differently. No op is better than a wrong op.
  for (size_t i = 0; as_expected && i < moved.size(); i++) add(moved[i], originals[i]);
  graphs.nodes.clear();
  graphs.steps.clear();
  graphs.instantiating = false;
}

epprof_columns* take_graph_nodes() {
  ForkLockGuard lock(mutex);
  auto* columns = new Columns;
  columns->add("node", std::move(nodes.node));
  columns->add("original", std::move(nodes.original));
  columns->add("op_id", std::move(nodes.op));
  columns->add("stack_id", std::move(nodes.stack));
  nodes.node.clear();
  nodes.original.clear();
  nodes.op.clear();
  nodes.stack.clear();
  return columns;
}

}  // namespace epprof
