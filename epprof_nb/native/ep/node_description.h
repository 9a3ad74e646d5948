// Nodes as Python sees them.
#pragma once

#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ep/api.h"
#include "ep/runtime.h"

namespace epprof::ep {

// The memory behind an ep_node.
struct NodeDescription {
  std::vector<ep_attribute> attributes;
  std::vector<ep_output> outputs;
  std::string name;
  std::deque<std::string> texts;
  std::deque<std::vector<int64_t>> ints;
  std::deque<std::vector<float>> floats;
  std::deque<std::vector<const char*>> lists;
  std::vector<Value*> values;
  std::vector<int> has_input;

  NodeDescription() = default;
  NodeDescription(const NodeDescription&) = delete;
  ~NodeDescription() {
    for (Value* value : values) rt.release_value(value);
  }
  ep_node view() const;  // valid while this exists
};

// Reads a node for which a kernel is created; `attributes`: names and types to look for.
void read_node(const KernelInfo*, const std::set<std::pair<std::string, int32_t>>& attributes,
               NodeDescription*);
// Reads a node that is being placed: its inputs, and attributes other than tensors and graphs.
void read_node(const Node*, NodeDescription*);

void read_tensor(const Value*, ep_tensor*);

}  // namespace epprof::ep
