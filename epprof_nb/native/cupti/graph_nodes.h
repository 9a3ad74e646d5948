// CUDA graph nodes: the op that captured each node, and the original of each clone.
//
// An instantiation clones a graph with its child graphs and the bodies of its conditional nodes,
// and then moves their nodes into the executable graph. CUPTI reports the clones and the end of
// each emptied graph, but not the new ids of the nodes. The ids continue the numbers of the
// executable graph in the order of the emptied graphs (CUDA 13.0).
#pragma once

#include <cstdint>

#include "core/columns.h"

namespace epprof {

void graph_node_created(uint64_t node, uint64_t op, uint32_t stack);
void graph_node_cloned(uint64_t node, uint64_t original);
void graph_destroyed(uint64_t graph);
// To call on the thread that instantiates a graph. The end has the id of the executable graph; 0:
// unknown.
void instantiation_begins();
void instantiation_ends(uint64_t graph);
// Columns of the nodes seen since the last call: node, original (0: not a clone), op_id (0: none),
// stack_id (-1: none).
epprof_columns* take_graph_nodes();

}  // namespace epprof
