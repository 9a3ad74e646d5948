// A call of a kernel's function: for a node of ONNX Runtime, or in the replay of a graph.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ep/graphs/captured_graph.h"
#include "ep/python_kernel.h"
#include "ep/runtime.h"

namespace epprof::ep {
class LaunchPlans;
struct LaunchPlan;
}  // namespace epprof::ep

struct ep_call {
  epprof::ep::KernelContext* context = nullptr;      // null in a replay
  const epprof::ep::PythonKernel* kernel = nullptr;  // likewise
  int device = -1;                                   // -1: the host device
  void* stream = nullptr;                            // of a CUDA device
  bool is_on_thread_of_run = false;  // whose end is reported on this thread
  const void* first_input = nullptr;         // for a kernel whose output may be a view of it
  std::vector<int64_t>* view = nullptr;      // gets the shape of an output that is a view
  bool made_view = false;
  const ep_tensor* inputs = nullptr;
  size_t input_count = 0;
  epprof::ep::LaunchPlans* plans = nullptr;  // gets the launches; null: no repeats
  std::shared_ptr<epprof::ep::LaunchPlan> plan;  // of the launches so far; null: none yet
  bool repeats = false;                          // the kernel has allowed repeats
  epprof::ep::CapturedCall* captured = nullptr;  // gets the outputs; null: no capture
  const std::vector<ep_tensor>* replayed_outputs = nullptr;  // null: not a replay
  std::string violation;  // why the call cannot be part of a graph
};
