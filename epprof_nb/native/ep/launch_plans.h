// Launches that a node repeats without a call of Python. A kernel that says so launches the same
// kernels for inputs of the same shapes, with other addresses.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ep/api.h"
#include "ep/cuda_driver.h"
#include "ep/input_key.h"

namespace epprof::ep {

struct PlannedArgument {
  ep_argument_source source;
  size_t index;   // of a tensor: its number
  size_t offset;  // from its beginning; of a constant: where its value begins
};

struct PlannedLaunch {
  CudaFunction function;
  std::string name;
  unsigned grid[3], block[3], shared_bytes;
  std::vector<PlannedArgument> arguments;
  std::vector<char> constants;  // each aligned to 16 bytes
};

struct LaunchPlan {
  LaunchPlan() = default;
  ~LaunchPlan();  // takes the GIL
  LaunchPlan(const LaunchPlan&) = delete;

  // Makes the outputs and launches. Throws.
  void run(ep_call*, const ep_tensor* inputs) const;
  void note(const ep_launch&);
  bool writes(size_t output) const;  // or reads it; false: no launch refers to it

  struct Output {
    size_t index;
    std::vector<int64_t> dims;
  };
  std::unique_ptr<InputKey> key;
  void* function = nullptr;   // of the kernel, which may be redefined
  std::vector<void*> owners;  // of the kernels that it launches
  std::vector<Output> outputs;
  std::vector<PlannedLaunch> launches;
  bool is_complete = true;  // all that the launches refer to is an input, an output or a constant
};

using LaunchPlanPtr = std::shared_ptr<const LaunchPlan>;

// The plans of a node, used by any thread.
class LaunchPlans {
 public:
  // The plan of the current function of a kernel; null: there is none.
  LaunchPlanPtr find(void* kernel, const ep_tensor* inputs, size_t count) const;
  // Takes the place of the one that was not used for longest, if there are many.
  void add(LaunchPlanPtr plan);

 private:
  static constexpr size_t kMost = 8;
  std::atomic<bool> has_any_{false};
  mutable std::mutex mutex_;
  mutable std::vector<LaunchPlanPtr> plans_;  // the one that was used last comes first
};

}  // namespace epprof::ep
