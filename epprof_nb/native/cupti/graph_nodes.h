// CUDA graph nodes: which op captured each, and which node each was cloned from.
#pragma once

#include <cstdint>

#include "core/columns.h"

namespace epprof {

void graph_node_created(uint64_t node, uint64_t op);
void graph_node_cloned(uint64_t node, uint64_t original);
// Everything since the last call: node, original (0: created by a capture), op (0: none).
ep_columns* take_graph_nodes();

}  // namespace epprof
