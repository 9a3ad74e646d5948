// A call of a kernel's function: for a node of ONNX Runtime, or in the replay of a graph.
#pragma once

#include <string>
#include <vector>

#include "ep/graphs.h"
#include "ep/python_kernel.h"
#include "ep/runtime.h"

struct ep_call {
  epprof::ep::KernelContext* context = nullptr;      // null in a replay
  const epprof::ep::PythonKernel* kernel = nullptr;  // likewise
  int device = -1;                                   // -1: the host device
  void* stream = nullptr;                            // of a CUDA device
  bool is_on_thread_of_run = false;  // whose end is reported on this thread
  const void* first_input = nullptr;         // of a kernel whose output may be a view of it
  std::vector<int64_t>* view = nullptr;      // gets the shape of an output that is one
  bool made_view = false;
  epprof::ep::Launch* capture = nullptr;         // gets the outputs; null: not captured
  const std::vector<ep_tensor>* recorded = nullptr;  // outputs of the launch that is replayed
  std::string violation;  // why the launch cannot be part of a graph
};
