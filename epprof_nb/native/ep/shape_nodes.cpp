#include "ep/shape_nodes.h"

#include <algorithm>
#include <map>

#include "ort/status.h"

namespace epprof::ep {
namespace {

using Names = std::vector<std::string>;

Names names_of(const std::vector<const ValueInfo*>& values) {
  Names names;
  for (const ValueInfo* value : values) {
    const char* name = "";
    if (value) check(rt.value_name(value, &name));
    names.emplace_back(name);
  }
  return names;
}

std::vector<const ValueInfo*> inputs_of(const Node* node) {
  size_t count = 0;
  check(rt.graph_node_input_count(node, &count));
  std::vector<const ValueInfo*> values(count);
  if (count) check(rt.graph_node_inputs(node, values.data(), count));
  return values;
}

std::vector<const ValueInfo*> outputs_of(const Node* node) {
  size_t count = 0;
  check(rt.graph_node_output_count(node, &count));
  std::vector<const ValueInfo*> values(count);
  if (count) check(rt.graph_node_outputs(node, values.data(), count));
  return values;
}

bool is_constant(const ValueInfo* value) {
  bool constant = false;
  if (value) check(rt.value_is_constant(value, &constant));
  return constant;
}

// The declaration of our kernel for a node; null: none.
const Declaration* declaration_of(const ep_session_plan& plan, const Node* node) {
  const char *op_type = nullptr, *domain = nullptr;
  int version = 0;
  check(rt.graph_node_type(node, &op_type));
  check(rt.graph_node_domain(node, &domain));
  check(rt.graph_node_version(node, &version));
  const PythonKernel* kernel = plan.kernels->find(domain, op_type, version);
  return kernel ? &kernel->declaration : nullptr;
}

// Nodes whose inputs are all in host memory or constant.
std::set<const Node*> nodes_on_host_values(const ep_session_plan& plan,
                                           const std::vector<const Node*>& nodes,
                                           const std::set<const Node*>& claimed) {
  std::set<const Node*> found;
  std::set<std::string> in_host_memory;
  bool grows = true;
  while (grows) {
    grows = false;
    for (const Node* node : nodes) {
      Names outputs = names_of(outputs_of(node));
      const Declaration* declaration = claimed.count(node) ? declaration_of(plan, node) : nullptr;
      for (size_t i = 0; declaration && i < outputs.size(); i++) {
        if (contains(declaration->host_outputs, i)) {
          grows |= in_host_memory.insert(outputs[i]).second;
        }
      }
      if (found.count(node)) continue;
      std::vector<const ValueInfo*> inputs = inputs_of(node);
      Names names = names_of(inputs);
      bool any = false, all = true;
      for (size_t i = 0; i < inputs.size(); i++) {
        bool on_host = in_host_memory.count(names[i]) != 0;
        any |= on_host;
        all &= on_host || names[i].empty() || is_constant(inputs[i]);
      }
      if (!any || !all) continue;
      found.insert(node);
      in_host_memory.insert(outputs.begin(), outputs.end());
      grows = true;
    }
  }
  return found;
}

}  // namespace

std::set<const Node*> shape_nodes(const ep_session_plan& plan,
                                  const std::vector<const Node*>& nodes,
                                  const std::set<const Node*>& claimed) {
  std::set<const Node*> found = nodes_on_host_values(plan, nodes, claimed);
  bool shrinks = !found.empty();
  while (shrinks) {
    shrinks = false;
    std::set<std::string> read_on_device;
    for (const Node* node : nodes) {
      if (found.count(node)) continue;
      const Declaration* declaration = claimed.count(node) ? declaration_of(plan, node) : nullptr;
      Names inputs = names_of(inputs_of(node));
      for (size_t i = 0; declaration && i < inputs.size(); i++) {
        if (!contains(declaration->host_inputs, i)) read_on_device.insert(inputs[i]);
      }
    }
    for (auto node = found.begin(); node != found.end();) {
      Names outputs = names_of(outputs_of(*node));
      bool leaves_host = std::any_of(outputs.begin(), outputs.end(), [&](const std::string& name) {
        return read_on_device.count(name) != 0;
      });
      node = leaves_host ? found.erase(node) : std::next(node);
      shrinks |= leaves_host;
    }
  }
  return found;
}

}  // namespace epprof::ep
