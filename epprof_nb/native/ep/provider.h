// The execution provider of one session: its kernels, and which nodes it claims.
#pragma once

#include <set>
#include <memory>
#include <string>
#include <vector>

#include "ep/api.h"
#include "ep/python_kernel.h"

struct ep_plan {
  std::vector<std::unique_ptr<epprof::ep::PythonKernel>> kernels;
  uint32_t session = 0;
  int device = -1;          // -1: the host device
  void* stream = nullptr;   // the user's, on a CUDA device; null: one of ours
  std::set<std::string> types, nodes;  // empty: all
  bool control_flow = false;

  ~ep_plan();
};

namespace epprof::ep {

Ep* make_provider(std::unique_ptr<ep_plan>);  // throws
void release_provider(Ep*);

}  // namespace epprof::ep
