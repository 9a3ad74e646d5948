// Functions that are loaded, and their launches.
#include <string.h>

#include "state.h"

using namespace fake;

namespace {

// Code that is compiled for the host runs all threads of a launch, one after the other.
struct Function {
  void (*run)(void** parameters, long long blocks);
  std::vector<size_t> sizes;  // of the parameters; 0: a pointer
};
std::set<Function*>& functions = *new std::set<Function*>;
std::mutex& running = *new std::mutex;  // the code has variables of its own

}  // namespace

extern "C" {

void* fake_load(void (*run)(void**, long long), const size_t* sizes, size_t count) {
  std::lock_guard lock(mutex);
  auto* function = new Function{run, {sizes, sizes + count}};
  functions.insert(function);
  return function;
}
// Its memory stays: a stream may be about to run it.
void fake_unload(void* function) {
  std::lock_guard lock(mutex);
  functions.erase(static_cast<Function*>(function));
}

int cuLaunchKernel(Function* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned, Stream* given,
                   void** parameters, void**) {
  std::lock_guard lock(mutex);
  Stream* stream = nullptr;
  if (int failed = usable("cuLaunchKernel", given, &stream)) return failed;
  if (!functions.count(function)) {
    misuse("cuLaunchKernel of a function that was unloaded");
    return kInvalidHandle;
  }
  unsigned long long blocks = 1ull * grid_x * grid_y * grid_z;
  unsigned long long threads = 1ull * block_x * block_y * block_z;
  if (!blocks || !threads || threads > 1024) return kInvalidValue;
  std::vector<std::vector<char>> values;
  std::vector<uint64_t> used;
  for (size_t i = 0; i < function->sizes.size(); i++) {
    size_t size = function->sizes[i];
    const char* value = static_cast<const char*>(parameters[i]);
    values.emplace_back(value, value + (size ? size : sizeof(void*)));
    uint64_t pointer = 0;
    if (!size) memcpy(&pointer, value, sizeof pointer);
    if (!pointer) continue;
    Allocation* found = allocation_at(pointer);
    if (!found) {
      misuse("a kernel uses memory that was freed");
      sticky = kIllegalAddress;
      return kIllegalAddress;
    }
    if (found->device >= 0 && found->device != stream->context->device) {
      misuse("a kernel uses memory of another device");
    }
    used.push_back(pointer);
  }
  if (stream->capturing) return 0;
  stream->add([=]() mutable {
    std::vector<void*> places;
    for (size_t i = 0; i < values.size(); i++) {
      void* place = values[i].data();
      if (!function->sizes[i]) memcpy(&place, values[i].data(), sizeof place);
      places.push_back(place);
    }
    for (uint64_t pointer : used) set_open(pointer, true);
    {
      std::lock_guard one(running);
      function->run(places.data(), static_cast<long long>(blocks));
    }
    for (uint64_t pointer : used) set_open(pointer, false);
  });
  return 0;
}

}  // extern "C"
