// Launches that a node repeats without calling Python. A kernel that allows this makes the same
// launches for inputs of the same shapes, with other addresses.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "ep/api.h"
#include "ep/call_input_key.h"
#include "ep/graphs/repeated_launches.h"

namespace epprof::ep {

struct LaunchPlan {
  LaunchPlan() = default;
  ~LaunchPlan();  // takes the GIL
  LaunchPlan(const LaunchPlan&) = delete;

  // Makes the outputs and launches. False if the launches do not fit the addresses, so that Python
  // must be called. Throws.
  bool run(ep_call*, const ep_tensor* inputs) const;
  // Adds a launch, and holds the object that it needs. Null: the launch cannot be repeated.
  void add(std::unique_ptr<PlannedLaunch>, void* owner);
  // The arguments of a launch, with the numbers of scratch memory instead of its addresses.
  std::vector<ep_argument> resolved(const ep_argument* arguments, size_t count) const;

  struct Scratch {
    const char* begin;  // in the call that made the plan
    size_t bytes;
  };
  struct Output {
    size_t index;
    std::vector<int64_t> dims;
  };
  std::unique_ptr<InputKey> key;
  void* function = nullptr;   // of the kernel, which may be redefined
  std::vector<void*> owners;  // of the kernels that it launches
  std::vector<Output> outputs;
  std::vector<Scratch> scratches;
  std::vector<std::unique_ptr<PlannedLaunch>> launches;
  bool is_complete = true;
};

using LaunchPlanPtr = std::shared_ptr<const LaunchPlan>;

// The plans of a node, shared by all threads.
class LaunchPlans {
 public:
  // The plan of the current function of a kernel; null: none.
  LaunchPlanPtr find(void* kernel, const ep_tensor* inputs, size_t count) const;
  // Replaces the least recently used plan if there are many.
  void add(LaunchPlanPtr plan);

 private:
  std::atomic<bool> has_any_{false};
  mutable std::mutex mutex_;
  mutable std::vector<LaunchPlanPtr> plans_;  // most recently used first
};

}  // namespace epprof::ep
