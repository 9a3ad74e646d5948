#include "ep/call_input_key.h"

#include <string.h>

namespace epprof::ep {

// The key omits types, because a node has the same types in all calls.
InputKey::InputKey(const ep_tensor* inputs, size_t count) {
  for (size_t i = 0; i < count && is_valid_; i++) {
    const ep_tensor& input = inputs[i];
    if (!input.present) {
      add(-1);
      continue;
    }
    add(int64_t(input.rank) << 1 | input.on_device);
    int64_t size = 1;
    for (size_t k = 0; k < input.rank; k++) {
      add(input.dims[k]);
      size *= input.dims[k];
    }
    if (input.on_device) continue;
    if (input.type != EP_INT64 || size > int64_t(kRoom)) {
      is_valid_ = false;
      return;
    }
    const auto* numbers = static_cast<const int64_t*>(input.data);
    for (int64_t k = 0; k < size; k++) add(numbers[k]);
  }
}

void InputKey::add(int64_t word) {
  if (count_ == kRoom) {
    is_valid_ = false;
  } else {
    words_[count_++] = word;
  }
}

bool InputKey::operator==(const InputKey& other) const {
  return is_valid_ && other.is_valid_ && count_ == other.count_ &&
         memcmp(words_, other.words_, count_ * sizeof *words_) == 0;
}

}  // namespace epprof::ep
