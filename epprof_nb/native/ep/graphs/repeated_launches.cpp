#include "ep/graphs/repeated_launches.h"

#include <string.h>

#include <algorithm>
#include <stdexcept>

#include "ep/cuda/arena.h"
#include "ep/cuda/memory.h"

namespace epprof::ep {
namespace {

constexpr size_t kAlignment = 16;  // of constants

bool refers_to_other_memory(const ep_argument* arguments, size_t count) {
  return std::any_of(arguments, arguments + count, [](const ep_argument& argument) {
    return argument.source == EP_OTHER_MEMORY;
  });
}

class Kernel : public PlannedLaunch {
 public:
  explicit Kernel(const ep_launch& given)
      : function_(static_cast<CudaFunction>(given.function)), shared_bytes_(given.shared_bytes) {
    name_ = given.name;
    std::copy_n(given.grid, 3, grid_);
    std::copy_n(given.block, 3, block_);
    for (size_t i = 0; i < given.argument_count; i++) {
      const ep_argument& argument = given.arguments[i];
      size_t offset = argument.offset;
      if (argument.source == EP_CONSTANT) {
        offset = (constants_.size() + kAlignment - 1) / kAlignment * kAlignment;
        constants_.resize(offset + argument.bytes);
        memcpy(&constants_[offset], argument.value, argument.bytes);
      }
      arguments_.push_back({argument.source, argument.index, offset});
    }
  }

  void launch(const TensorsOfCall& tensors, int, CudaStream stream) const override {
    void* addresses[EP_MOST_ARGUMENTS];
    void* parameters[EP_MOST_ARGUMENTS];
    size_t count = 0;
    for (const Argument& argument : arguments_) {
      if (argument.source == EP_CONSTANT) {
        parameters[count] = const_cast<char*>(&constants_[argument.offset]);
      } else {
        addresses[count] = address(argument, tensors);
        parameters[count] = &addresses[count];
      }
      count++;
    }
    int result = cuda.LaunchKernel(function_, grid_[0], grid_[1], grid_[2], block_[0], block_[1],
                                   block_[2], shared_bytes_, stream, parameters, nullptr);
    if (result != kSuccess) throw std::runtime_error(launch_failure(name_, result));
  }

 private:
  CudaFunction function_;
  unsigned grid_[3], block_[3], shared_bytes_;
  std::vector<char> constants_;
};

class LibraryLaunch : public PlannedLaunch {
 public:
  explicit LibraryLaunch(const ep_library_launch& given) : given_(given) {
    name_ = given.name;
    for (size_t i = 0; i < given.argument_count; i++) {
      const ep_argument& argument = given.arguments[i];
      arguments_.push_back({argument.source, argument.index, argument.offset});
    }
  }

  bool fits(const TensorsOfCall& tensors) const override {
    return std::all_of(arguments_.begin(), arguments_.end(), [&](const Argument& argument) {
      return reinterpret_cast<uintptr_t>(address(argument, tensors)) % given_.alignment == 0;
    });
  }

  void launch(const TensorsOfCall& tensors, int device, CudaStream stream) const override {
    void* addresses[EP_MOST_ARGUMENTS];
    size_t count = 0;
    for (const Argument& argument : arguments_) addresses[count++] = address(argument, tensors);
    void* workspace = nullptr;
    CudaArena& arena = arena_of(device);
    if (size_t bytes = given_.workspace_bytes) {
      workspace = arena.allocate(bytes, nullptr);
      if (!workspace) throw std::runtime_error(out_of_device_memory(device, bytes));
    }
    int status = given_.launch(given_.object, addresses, workspace, stream);
    arena.free(workspace);  // the next work of this stream may reuse it
    if (status) throw std::runtime_error(name_ + " failed with status " + std::to_string(status));
  }

 private:
  ep_library_launch given_;
};

}  // namespace

bool PlannedLaunch::refers_to_output(size_t index) const {
  return std::any_of(arguments_.begin(), arguments_.end(), [&](const Argument& argument) {
    return argument.source == EP_OF_OUTPUT && argument.index == index;
  });
}

// Null for a constant of a library's launch, which is a missing address.
void* PlannedLaunch::address(const Argument& argument, const TensorsOfCall& tensors) {
  if (argument.source == EP_CONSTANT) return nullptr;
  if (argument.source == EP_OF_SCRATCH) {
    return static_cast<char*>(tensors.scratches[argument.index]) + argument.offset;
  }
  const ep_tensor* all = argument.source == EP_OF_INPUT ? tensors.inputs : tensors.outputs;
  return static_cast<char*>(all[argument.index].data) + argument.offset;
}

std::unique_ptr<PlannedLaunch> plan_kernel(const ep_launch& given) {
  if (refers_to_other_memory(given.arguments, given.argument_count)) return nullptr;
  return std::make_unique<Kernel>(given);
}

std::unique_ptr<PlannedLaunch> plan_library_launch(const ep_library_launch& given) {
  if (refers_to_other_memory(given.arguments, given.argument_count)) return nullptr;
  return std::make_unique<LibraryLaunch>(given);
}

std::string launch_failure(const std::string& kernel, int result) {
  return "the launch of " + kernel + " failed: " + cuda_error("cuLaunchKernel", result);
}

}  // namespace epprof::ep
