#include "cupti/graph_nodes.h"

#include <mutex>
#include <vector>

namespace epprof {
namespace {

struct Nodes {
  std::mutex mutex;  // not in the hot path: a replay creates no nodes
  std::vector<uint64_t> node, original, op;
};

Nodes& nodes() {
  static Nodes* n = new Nodes;
  return *n;
}

void add(uint64_t node, uint64_t original, uint64_t op) {
  Nodes& n = nodes();
  std::lock_guard<std::mutex> lock(n.mutex);
  n.node.push_back(node);
  n.original.push_back(original);
  n.op.push_back(op);
}

}  // namespace

void graph_node_created(uint64_t node, uint64_t op) { add(node, 0, op); }
void graph_node_cloned(uint64_t node, uint64_t original) { add(node, original, 0); }

ep_columns* take_graph_nodes() {
  Nodes& n = nodes();
  std::lock_guard<std::mutex> lock(n.mutex);
  auto* columns = new Columns;
  columns->add("node", std::move(n.node));
  columns->add("original", std::move(n.original));
  columns->add("op_id", std::move(n.op));
  n.node.clear();
  n.original.clear();
  n.op.clear();
  return columns;
}

}  // namespace epprof
