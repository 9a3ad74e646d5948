// Results of kernels whose output is a view of their first input. The shape of the output follows
// from the shape of that input and from inputs in host memory. A node that gets the same values
// again need not call Python.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "ep/api.h"
#include "ep/runtime.h"

namespace epprof::ep {

class KnownViews {
 public:
  KnownViews() = default;
  ~KnownViews();  // takes the GIL
  KnownViews(const KnownViews&) = delete;

  // Makes the output of a node. False if the output is unknown or not in the memory of the input,
  // so that the kernel must be called. Throws.
  bool make_output(KernelContext*, void* kernel, const ep_tensor* inputs, size_t count) const;
  // Keeps the shape of an output in the memory of the first input.
  void add(void* kernel, const ep_tensor* inputs, size_t count, const std::vector<int64_t>& shape);

 private:
  struct View {
    void* function;  // of the kernel, which may be redefined
    std::vector<int64_t> dims, shape;  // of the input and of the output
    std::vector<int64_t> numbers;      // in the other inputs
    bool is_of(const ep_tensor* inputs, size_t count) const;
  };
  static constexpr size_t kMost = 8;

  // Any thread appends views. They never change.
  std::atomic<const View*> views_[kMost] = {};
};

}  // namespace epprof::ep
