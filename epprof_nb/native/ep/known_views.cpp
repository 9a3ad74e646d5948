#include "ep/known_views.h"

#include <string.h>

#include <algorithm>
#include <memory>

#include "ep/interpreter.h"
#include "ort/status.h"

namespace epprof::ep {
namespace {

constexpr size_t kMostNumbers = 64;

size_t size_of(const ep_tensor& tensor) {
  size_t size = 1;
  for (size_t i = 0; i < tensor.rank; i++) size *= static_cast<size_t>(tensor.dims[i]);
  return size;
}

// Whether the inputs after the first are numbers in host memory, such as shapes and axes.
bool are_numbers(const ep_tensor* inputs, size_t count) {
  return std::all_of(inputs + 1, inputs + count, [](const ep_tensor& input) {
    return !input.present ||
           (!input.on_device && input.type == EP_INT64 && size_of(input) <= kMostNumbers);
  });
}

}  // namespace

KnownViews::~KnownViews() {
  if (!views_[0].load(std::memory_order_relaxed)) return;
  void* entered = interpreter.enter();
  for (auto& place : views_) {
    const View* view = place.load(std::memory_order_relaxed);
    if (view && entered) interpreter.release_function(view->function);
    delete view;
  }
  if (entered) interpreter.leave(entered);
}

bool KnownViews::View::is_of(const ep_tensor* inputs, size_t count) const {
  if (!std::equal(dims.begin(), dims.end(), inputs[0].dims, inputs[0].dims + inputs[0].rank)) {
    return false;
  }
  size_t at = 0;
  for (size_t i = 1; i < count; i++) {
    if (!inputs[i].present) continue;
    size_t size = size_of(inputs[i]);
    if (numbers.size() - at < size) return false;
    if (size && memcmp(&numbers[at], inputs[i].data, size * sizeof(int64_t)) != 0) return false;
    at += size;
  }
  return at == numbers.size();
}

bool KnownViews::make_output(KernelContext* context, void* kernel, const ep_tensor* inputs,
                             size_t count) const {
  if (!views_[0].load(std::memory_order_acquire) || !count || !inputs[0].present ||
      !are_numbers(inputs, count)) {
    return false;
  }
  for (const auto& place : views_) {
    const View* view = place.load(std::memory_order_acquire);
    if (!view) return false;
    if (!interpreter.is_current(kernel, view->function) || !view->is_of(inputs, count)) continue;
    Value* value = nullptr;
    void* data = nullptr;
    check(rt.context_output(context, 0, view->shape.data(), view->shape.size(), &value));
    if (value) check(rt.tensor_mutable_data(value, &data));
    return data && data == inputs[0].data;
  }
  return false;
}

void KnownViews::add(void* kernel, const ep_tensor* inputs, size_t count,
                     const std::vector<int64_t>& shape) {
  if (views_[kMost - 1].load(std::memory_order_relaxed) || !are_numbers(inputs, count)) return;
  auto made = std::make_unique<View>();
  made->dims.assign(inputs[0].dims, inputs[0].dims + inputs[0].rank);
  made->shape = shape;
  for (size_t i = 1; i < count; i++) {
    if (!inputs[i].present) continue;
    const auto* numbers = static_cast<const int64_t*>(inputs[i].data);
    made->numbers.insert(made->numbers.end(), numbers, numbers + size_of(inputs[i]));
  }
  made->function = interpreter.hold_function(kernel);
  if (!made->function) return;
  for (auto& place : views_) {
    const View* free = nullptr;
    if (place.compare_exchange_strong(free, made.get(), std::memory_order_acq_rel)) {
      made.release();
      return;
    }
  }
  if (void* entered = interpreter.enter()) {
    interpreter.release_function(made->function);
    interpreter.leave(entered);
  }
}

}  // namespace epprof::ep
