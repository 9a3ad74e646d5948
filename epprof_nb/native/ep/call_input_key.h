// Values that the launches of a node may depend on: shapes of its inputs, and numbers in host
// memory.
#pragma once

#include "ep/api.h"

namespace epprof::ep {

class InputKey {
 public:
  InputKey(const ep_tensor* inputs, size_t count);

  // False if an input in host memory is not a few integers, such as a shape or axes.
  bool is_valid() const { return is_valid_; }
  bool operator==(const InputKey&) const;

 private:
  void add(int64_t word);

  static constexpr size_t kRoom = 64;
  int64_t words_[kRoom];
  size_t count_ = 0;
  bool is_valid_ = true;
};

}  // namespace epprof::ep
