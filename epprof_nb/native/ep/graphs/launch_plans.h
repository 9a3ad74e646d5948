// Launches that a node repeats without a call of Python. A kernel that says so launches the same
// kernels for inputs of the same shapes, with other addresses.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "ep/api.h"
#include "ep/input_key.h"
#include "ep/graphs/planned_launches.h"

namespace epprof::ep {

struct LaunchPlan {
  LaunchPlan() = default;
  ~LaunchPlan();  // takes the GIL
  LaunchPlan(const LaunchPlan&) = delete;

  // Makes the outputs and launches. False if the launches do not fit the addresses, and Python is to
  // be called. Throws.
  bool run(ep_call*, const ep_tensor* inputs) const;
  // Adds a launch, and holds the object that it needs. Null: it cannot be repeated.
  void add(std::unique_ptr<PlannedLaunch>, void* owner);

  struct Output {
    size_t index;
    std::vector<int64_t> dims;
  };
  std::unique_ptr<InputKey> key;
  void* function = nullptr;   // of the kernel, which may be redefined
  std::vector<void*> owners;  // of the kernels that it launches
  std::vector<Output> outputs;
  std::vector<std::unique_ptr<PlannedLaunch>> launches;
  bool is_complete = true;
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
