#include "cupti/graph_nodes.h"

#include <vector>

#include "core/fork.h"

namespace epprof {
namespace {

struct Nodes {
  std::vector<uint64_t> node, original, op;
};

ForkSafeMutex mutex;  // not in the hot path: a replay creates no nodes
Nodes& nodes = *new Nodes;

void add(uint64_t node, uint64_t original, uint64_t op) {
  ForkLockGuard lock(mutex);
  nodes.node.push_back(node);
  nodes.original.push_back(original);
  nodes.op.push_back(op);
}

}  // namespace

void graph_node_created(uint64_t node, uint64_t op) { add(node, 0, op); }
void graph_node_cloned(uint64_t node, uint64_t original) { add(node, original, 0); }

ep_columns* take_graph_nodes() {
  ForkLockGuard lock(mutex);
  auto* columns = new Columns;
  columns->add("node", std::move(nodes.node));
  columns->add("original", std::move(nodes.original));
  columns->add("op_id", std::move(nodes.op));
  nodes.node.clear();
  nodes.original.clear();
  nodes.op.clear();
  return columns;
}

}  // namespace epprof
