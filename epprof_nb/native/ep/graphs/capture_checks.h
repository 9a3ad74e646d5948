// What a graph of Python kernels cannot hold.
#pragma once

#include "ep/declaration.h"
#include "ep/graphs/captured_graph.h"

namespace epprof::ep {

// An output in host memory that depends on device memory: a replay would have to wait for it.
bool writes_host_data(const Declaration&, const ep_tensor* inputs, size_t count);

// Reports operations of a call on a CUDA device that cannot be part of a graph, unless Python has.
void check_capture(GraphRun*, const CapturedCall&, size_t nodes_before);

}  // namespace epprof::ep
