// Declarations of kernels, and their entry in a registry.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ep/runtime.h"

namespace epprof::ep {

constexpr const char* kProviderName = "EpprofExecutionProvider";
// The name under which the library is registered for CUDA devices; the provider's name is the same.
constexpr const char* kCudaLibrary = "EpprofExecutionProvider.cuda";

// No upper limit. With INT_MAX, ONNX Runtime takes a kernel only for the version that is its first.
constexpr int kLastVersion = 0x7FFFFFFE;

struct Declaration {
  std::string op_type, domain;
  int first_version, last_version;
  // Allowed element types (ONNXTensorElementDataType) by the name of the type constraint.
  std::vector<std::pair<std::string, std::vector<int32_t>>> types;
  std::vector<size_t> host_inputs, host_outputs;  // in host memory
  bool is_view = false;  // the output may share the memory of the first input
};

// Whether the numbers of a declaration's inputs or outputs have one.
inline bool contains(const std::vector<size_t>& numbers, size_t number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

extern const std::vector<int32_t> kNumericTypes;

void add_kernel(KernelRegistry*, const Declaration&, KernelCreateFunction, void* state);  // throws

}  // namespace epprof::ep
