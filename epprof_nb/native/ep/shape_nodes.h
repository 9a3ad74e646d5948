// Nodes that compute shapes from shapes. A session that captures graphs leaves them to the CPU: a
// graph has no copies between host and device.
#pragma once

#include <set>

#include "ep/provider.h"

namespace epprof::ep {

// Of these nodes of one graph, those whose inputs are in host memory or constant, and whose outputs
// are read in host memory only. `claimed`: those with a kernel of ours.
std::set<const Node*> shape_nodes(const ep_session_plan&, const std::vector<const Node*>& nodes,
                                  const std::set<const Node*>& claimed);

}  // namespace epprof::ep
