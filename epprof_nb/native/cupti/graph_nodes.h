// CUDA graph nodes: the op that captured each node, and the node that each clone was made from.
#pragma once

#include <cstdint>

#include "core/columns.h"

namespace epprof {

void graph_node_created(uint64_t node, uint64_t op);
void graph_node_cloned(uint64_t node, uint64_t original);
// Columns of the nodes seen since the last call: node, original (0: not a clone), op_id (0: none).
ep_columns* take_graph_nodes();

}  // namespace epprof
