// The execution provider of one session, with its kernels and claimed nodes.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ep/api.h"
#include "ep/kernel_set.h"

struct ep_session_plan {
  std::shared_ptr<epprof::ep::KernelSet> kernels;
  uint32_t session = 0;
  int device = -1;          // -1: the host device
  void* stream = nullptr;   // the user's, on a CUDA device; null: one of ours
  std::set<std::string> types, nodes;  // empty: all
  std::set<std::string> unmatched_types, unmatched_nodes;  // not found in any node so far
  const epprof::ort::Logger* logger = nullptr;  // of the session
  bool graphs = false;  // captures graphs
  bool has_control_flow = false;  // ONNX Runtime captures no graph of such a model
  std::map<std::string, int32_t> node_indexes;  // of the main graph, by name; -1: not unique
};

namespace epprof::ep {

const ep_session_plan& session_plan_of(const KernelInfo*);  // of a kernel of our provider; throws

// ONNX Runtime's index of a node, by name; -1: unknown.
int32_t node_index(const ep_session_plan&, const std::string& name);

Ep* make_provider(std::unique_ptr<ep_session_plan>);  // throws
void release_provider(Ep*);

}  // namespace epprof::ep
