#include "ep/launch_plans.h"

#include <string.h>

#include <algorithm>
#include <stdexcept>

#include "ep/call.h"
#include "ep/interpreter.h"

namespace epprof::ep {
namespace {

constexpr size_t kMostOutputs = 16, kMostLaunches = 16, kAlignment = 16, kMostConstants = 4096;

void* address(const ep_tensor& tensor, size_t offset) {
  return static_cast<char*>(tensor.data) + offset;
}

std::string failure(const std::string& name, int result) {
  return "the launch of " + name + " failed: " + cuda_error("cuLaunchKernel", result);
}

void launch(const PlannedLaunch& planned, const ep_tensor* inputs, const ep_tensor* outputs,
            CudaStream stream) {
  void* addresses[EP_MOST_ARGUMENTS];
  void* parameters[EP_MOST_ARGUMENTS];
  size_t count = 0;
  for (const PlannedArgument& argument : planned.arguments) {
    if (argument.source == EP_CONSTANT) {
      parameters[count] = const_cast<char*>(&planned.constants[argument.offset]);
    } else {
      const ep_tensor* tensors = argument.source == EP_OF_INPUT ? inputs : outputs;
      addresses[count] = address(tensors[argument.index], argument.offset);
      parameters[count] = &addresses[count];
    }
    count++;
  }
  const unsigned *grid = planned.grid, *block = planned.block;
  int result = cuda.LaunchKernel(planned.function, grid[0], grid[1], grid[2], block[0], block[1],
                                 block[2], planned.shared_bytes, stream, parameters, nullptr);
  if (result != kSuccess) throw std::runtime_error(failure(planned.name, result));
}

}  // namespace

LaunchPlan::~LaunchPlan() {
  void* entered = interpreter.enter();
  if (!entered) return;
  for (void* owner : owners) interpreter.release_function(owner);
  if (function) interpreter.release_function(function);
  interpreter.leave(entered);
}

void LaunchPlan::note(const ep_launch& given) {
  if (!is_complete || launches.size() == kMostLaunches) {
    is_complete = false;
    return;
  }
  PlannedLaunch planned{static_cast<CudaFunction>(given.function), given.name, {}, {},
                        given.shared_bytes, {}, {}};
  std::copy_n(given.grid, 3, planned.grid);
  std::copy_n(given.block, 3, planned.block);
  for (size_t i = 0; i < given.argument_count; i++) {
    const ep_argument& argument = given.arguments[i];
    size_t offset = argument.offset;
    if (argument.source == EP_CONSTANT) {
      offset = (planned.constants.size() + kAlignment - 1) / kAlignment * kAlignment;
      planned.constants.resize(offset + argument.bytes);
      memcpy(&planned.constants[offset], argument.value, argument.bytes);
    }
    is_complete &= argument.source != EP_OTHER_MEMORY;
    planned.arguments.push_back({argument.source, argument.index, offset});
  }
  is_complete &= planned.constants.size() <= kMostConstants;
  interpreter.hold_object(given.owner);
  owners.push_back(given.owner);
  launches.push_back(std::move(planned));
}

bool LaunchPlan::writes(size_t output) const {
  return std::any_of(launches.begin(), launches.end(), [&](const PlannedLaunch& planned) {
    return std::any_of(planned.arguments.begin(), planned.arguments.end(),
                       [&](const PlannedArgument& argument) {
                         return argument.source == EP_OF_OUTPUT && argument.index == output;
                       });
  });
}

void LaunchPlan::run(ep_call* call, const ep_tensor* inputs) const {
  ep_tensor made[kMostOutputs];  // by number
  for (const Output& output : outputs) {
    raise(ep_call_output(call, output.index, output.dims.data(), output.dims.size(),
                         &made[output.index]));
  }
  for (const PlannedLaunch& planned : launches) {
    launch(planned, inputs, made, static_cast<CudaStream>(call->stream));
  }
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
  LaunchPlanPtr dropped;  // after the lock: it takes the GIL
  std::lock_guard lock(mutex_);
  auto same = std::find_if(plans_.begin(), plans_.end(),
                           [&](const LaunchPlanPtr& known) { return *known->key == *plan->key; });
  if (same == plans_.end() && plans_.size() == kMost) same = plans_.end() - 1;
  if (same != plans_.end()) {
    dropped = std::move(*same);
    plans_.erase(same);
  }
  plans_.insert(plans_.begin(), std::move(plan));
  has_any_.store(true, std::memory_order_release);
}

}  // namespace epprof::ep

using namespace epprof::ep;

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
  return result == kSuccess ? nullptr : strdup(failure(launch->name, result).c_str());
}

void ep_call_note_launch(ep_call* call, const ep_launch* launch) {
  if (!call->plans) return;
  if (!call->plan) call->plan = std::make_shared<LaunchPlan>();
  call->plan->note(*launch);
}

void ep_call_repeat_launches(ep_call* call) { call->repeats = true; }

void ep_call_keep_launches(ep_call* call, void* function, const ep_tensor* outputs, size_t count) {
  std::shared_ptr<LaunchPlan> plan = std::move(call->plan);
  if (!plan || !call->repeats || !plan->is_complete || count > kMostOutputs) return;
  plan->key = std::make_unique<InputKey>(call->inputs, call->input_count);
  if (!plan->key->is_valid()) return;
  for (size_t i = 0; i < count; i++) {
    const ep_tensor& output = outputs[i];
    if (!output.present) continue;
    if (!output.on_device || (output.bytes && !plan->writes(i))) return;
    plan->outputs.push_back({i, {output.dims, output.dims + output.rank}});
  }
  interpreter.hold_object(function);
  plan->function = function;
  call->plans->add(std::move(plan));
}

}  // extern "C"
