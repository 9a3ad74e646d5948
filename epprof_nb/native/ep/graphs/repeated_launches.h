// Launches that can be repeated with the addresses of other tensors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ep/api.h"
#include "ep/cuda/driver.h"

namespace epprof::ep {

// The sources of the addresses of a launch, by number.
struct TensorsOfCall {
  const ep_tensor *inputs, *outputs;
  void* const* scratches;
};

class PlannedLaunch {
 public:
  virtual ~PlannedLaunch() = default;
  // Whether the launch can be made with these tensors.
  virtual bool fits(const TensorsOfCall&) const { return true; }
  virtual void launch(const TensorsOfCall&, int device, CudaStream) const = 0;  // throws
  bool refers_to_output(size_t index) const;

 protected:
  struct Argument {
    ep_argument_source source;
    size_t index;   // of a tensor: its number
    size_t offset;  // in the tensor; for a constant, of its value
  };
  static void* address(const Argument&, const TensorsOfCall&);

  std::string name_;
  std::vector<Argument> arguments_;
};

// Null if an argument is other memory than the inputs, the outputs and scratch memory.
std::unique_ptr<PlannedLaunch> plan_kernel(const ep_launch&);
std::unique_ptr<PlannedLaunch> plan_library_launch(const ep_library_launch&);

std::string launch_failure(const std::string& kernel, int result);  // the message

}  // namespace epprof::ep
