#include "ep/graphs/launch_plans.h"

#include <string.h>

#include <algorithm>
#include <stdexcept>

#include "ep/call.h"
#include "ep/cuda/arena.h"
#include "ep/cuda/memory.h"
#include "ep/interpreter.h"

namespace epprof::ep {
namespace {

constexpr size_t kMostPlans = 8;  // per node, one for each set of input shapes
constexpr size_t kMostOutputs = 16, kMostLaunches = 16, kMostScratches = 4;

// Scratch memory of a repeat. Once its launches are made, the next work of the stream may reuse it.
class ScratchMemory {
 public:
  explicit ScratchMemory(int device) : device_(device) {}
  ~ScratchMemory() {
    for (size_t i = 0; i < count_; i++) arena_of(device_).free(memory_[i]);
  }
  ScratchMemory(const ScratchMemory&) = delete;

  void add(size_t bytes) {
    void* memory = arena_of(device_).allocate(bytes, nullptr);
    if (!memory) throw std::runtime_error(out_of_device_memory(device_, bytes));
    memory_[count_++] = memory;
  }
  void* const* all() const { return memory_; }

 private:
  int device_;
  size_t count_ = 0;
  void* memory_[kMostScratches];
};

}  // namespace

LaunchPlan::~LaunchPlan() {
  void* entered = interpreter.enter();
  if (!entered) return;
  for (void* owner : owners) interpreter.release_function(owner);
  if (function) interpreter.release_function(function);
  interpreter.leave(entered);
}

void LaunchPlan::add(std::unique_ptr<PlannedLaunch> launch, void* owner) {
  is_complete &= launch != nullptr && launches.size() < kMostLaunches;
  if (!is_complete) return;
  interpreter.hold_object(owner);
  owners.push_back(owner);
  launches.push_back(std::move(launch));
}

std::vector<ep_argument> LaunchPlan::resolved(const ep_argument* arguments, size_t count) const {
  std::vector<ep_argument> all(arguments, arguments + count);
  for (ep_argument& argument : all) {
    if (argument.source != EP_OTHER_MEMORY) continue;
    const char* address = nullptr;
    memcpy(&address, argument.value, sizeof address);
    for (size_t i = 0; i < scratches.size(); i++) {
      const Scratch& scratch = scratches[i];
      if (address < scratch.begin || address >= scratch.begin + scratch.bytes) continue;
      argument.source = EP_OF_SCRATCH;
      argument.index = i;
      argument.offset = size_t(address - scratch.begin);
    }
  }
  return all;
}

bool LaunchPlan::run(ep_call* call, const ep_tensor* inputs) const {
  ep_tensor made[kMostOutputs];  // by number
  for (const Output& output : outputs) {
    raise(ep_call_output(call, output.index, output.dims.data(), output.dims.size(),
                         &made[output.index]));
  }
  ScratchMemory scratch(call->device);
  for (const Scratch& needed : scratches) scratch.add(needed.bytes);
  TensorsOfCall tensors{inputs, made, scratch.all()};
  bool fits = std::all_of(launches.begin(), launches.end(),
                          [&](const auto& launch) { return launch->fits(tensors); });
  if (!fits) return false;
  for (const auto& launch : launches) {
    launch->launch(tensors, call->device, static_cast<CudaStream>(call->stream));
  }
  return true;
}

LaunchPlanPtr LaunchPlans::find(void* kernel, const ep_tensor* inputs, size_t count) const {
  if (!has_any_.load(std::memory_order_acquire)) return nullptr;
  InputKey key(inputs, count);
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < plans_.size(); i++) {
    if (!(*plans_[i]->key == key) || !interpreter.is_current(kernel, plans_[i]->function)) continue;
    std::rotate(plans_.begin(), plans_.begin() + ptrdiff_t(i), plans_.begin() + ptrdiff_t(i) + 1);
    return plans_.front();
  }
  return nullptr;
}

void LaunchPlans::add(LaunchPlanPtr plan) {
  LaunchPlanPtr dropped;  // destroyed after the lock, because it takes the GIL
  std::lock_guard lock(mutex_);
  auto same = std::find_if(plans_.begin(), plans_.end(),
                           [&](const LaunchPlanPtr& known) { return *known->key == *plan->key; });
  if (same == plans_.end() && plans_.size() == kMostPlans) same = plans_.end() - 1;
  if (same != plans_.end()) {
    dropped = std::move(*same);
    plans_.erase(same);
  }
  plans_.insert(plans_.begin(), std::move(plan));
  has_any_.store(true, std::memory_order_release);
}

}  // namespace epprof::ep

using namespace epprof::ep;

namespace {

// Null: the launches of the call are not kept.
LaunchPlan* launch_plan_of(ep_call* call) {
  if (call->plans && !call->plan) call->plan = std::make_shared<LaunchPlan>();
  return call->plan.get();
}

}  // namespace

extern "C" {

char* ep_call_launch(const ep_call* call, const ep_launch* launch) {
  void* parameters[EP_MOST_ARGUMENTS];
  for (size_t i = 0; i < launch->argument_count; i++) {
    parameters[i] = const_cast<void*>(launch->arguments[i].value);
  }
  const unsigned *grid = launch->grid, *block = launch->block;
  int result = cuda.LaunchKernel(static_cast<CudaFunction>(launch->function), grid[0], grid[1],
                                 grid[2], block[0], block[1], block[2], launch->shared_bytes,
                                 static_cast<CudaStream>(call->stream), parameters, nullptr);
  return result == kSuccess ? nullptr : strdup(launch_failure(launch->name, result).c_str());
}

void ep_call_note_launch(ep_call* call, const ep_launch* launch) {
  LaunchPlan* plan = launch_plan_of(call);
  if (!plan) return;
  ep_launch noted = *launch;
  std::vector<ep_argument> arguments = plan->resolved(launch->arguments, launch->argument_count);
  noted.arguments = arguments.data();
  plan->add(plan_kernel(noted), launch->owner);
}

void ep_call_note_library_launch(ep_call* call, const ep_library_launch* launch) {
  LaunchPlan* plan = launch_plan_of(call);
  if (!plan) return;
  ep_library_launch noted = *launch;
  std::vector<ep_argument> arguments = plan->resolved(launch->arguments, launch->argument_count);
  noted.arguments = arguments.data();
  plan->add(plan_library_launch(noted), launch->owner);
}

void ep_call_note_scratch(ep_call* call, const void* data, size_t bytes) {
  LaunchPlan* plan = launch_plan_of(call);
  if (!plan || !bytes) return;
  plan->is_complete &= plan->scratches.size() < kMostScratches;
  if (plan->is_complete) plan->scratches.push_back({static_cast<const char*>(data), bytes});
}

void ep_call_repeat_launches(ep_call* call) { call->repeats = true; }
int ep_call_repeats(const ep_call* call) { return call->repeats; }

void ep_call_repeat_nothing(ep_call* call) {
  if (LaunchPlan* plan = launch_plan_of(call)) plan->is_complete = false;
}

void ep_call_keep_launches(ep_call* call, void* function, const ep_tensor* outputs, size_t count) {
  std::shared_ptr<LaunchPlan> plan = std::move(call->plan);
  if (!plan || !call->repeats || !plan->is_complete || count > kMostOutputs) return;
  plan->key = std::make_unique<InputKey>(call->inputs, call->input_count);
  if (!plan->key->is_valid()) return;
  for (size_t i = 0; i < count; i++) {
    const ep_tensor& output = outputs[i];
    if (!output.present) continue;
    bool is_written = std::any_of(plan->launches.begin(), plan->launches.end(),
                                  [&](const auto& launch) { return launch->refers_to_output(i); });
    if (!output.on_device || (output.bytes && !is_written)) return;
    plan->outputs.push_back({i, {output.dims, output.dims + output.rank}});
  }
  interpreter.hold_object(function);
  plan->function = function;
  call->plans->add(std::move(plan));
}

}  // extern "C"
