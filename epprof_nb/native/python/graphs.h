// Graphs as Python objects.
#pragma once

#include "python/convert.h"

#include "ep/api.h"

// (graph_id, session, gpu_graph_id, op_id, parent_op_id, captured_in, start_ns, end_ns, nodes), each
// node (graph_node_id, op_id, name, op_type, node_index, start_ns, end_ns, launches).
PyObject* describe_graph(const ep_graph* graph);
