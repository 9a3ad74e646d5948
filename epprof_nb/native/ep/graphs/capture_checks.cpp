#include "ep/graphs/capture_checks.h"

#include <algorithm>

namespace epprof::ep {

bool writes_host_data(const Declaration& declaration, const ep_tensor* inputs, size_t count) {
  if (declaration.host_outputs.empty()) return false;
  if (declaration.op_type == "Shape" || declaration.op_type == "Size") return false;
  for (size_t i = 0; i < count; i++) {
    if (inputs[i].present && !contains(declaration.host_inputs, i)) return true;
  }
  return false;
}

void check_capture(GraphRun* run, const CapturedCall& captured, size_t nodes_before) {
  if (run->violated) return;
  const CudaGraph& graph = *run->graph->cuda;
  if (!graph.is_intact()) {
    report_violation(
        "makes a call that a capture does not allow, and catches its error. A kernel in a graph "
        "neither waits for the device nor reads its results on the host: leave that out");
    return;
  }
  const auto &inputs = captured.inputs, &outputs = captured.outputs;
  bool writes = std::any_of(outputs.begin(), outputs.end(), [&](const CapturedTensor& output) {
    bool is_view = !inputs.empty() && output.tensor.data == inputs[0].tensor.data;
    return output.tensor.on_device && output.bytes && !is_view;
  });
  if (writes && graph.node_count() == nodes_before) {
    report_violation(
        "launches nothing on the session's stream, so a replay would not repeat it. Launch on the "
        "stream that is current in the kernel, whose address is ctx.stream");
  }
}

}  // namespace epprof::ep
