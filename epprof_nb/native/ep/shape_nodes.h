// Nodes that compute shapes from shapes. A session that captures graphs leaves them to the CPU,
// because a graph has no copies between host and device.
#pragma once

#include <set>

#include "ep/provider.h"

namespace epprof::ep {

// Returns the nodes of one graph whose inputs are in host memory or constant, and whose outputs are
// read only in host memory. `claimed`: nodes with our kernels.
std::set<const Node*> shape_nodes(const ep_session_plan&, const std::vector<const Node*>& nodes,
                                  const std::set<const Node*>& claimed);

}  // namespace epprof::ep
