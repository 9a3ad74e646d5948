// Launches are alike if they have the same function, kernel, grid and block, or size.
#include "gpu/launch_signature.h"

#include <cstdio>
#include <cstdlib>

using namespace epprof;

namespace {

void expect(const char* what, bool found) {
  if (found) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

// The parameters as the driver gets them: pointers, then numbers.
template <typename Parameters, typename Change>
void expect_told_apart(const char* what, LaunchParams kind, Parameters parameters, Change change,
                       bool by_function, bool by_exact) {
  LaunchSignature before = launch_signature(kind, 7, &parameters);
  change(parameters);
  LaunchSignature after = launch_signature(kind, 7, &parameters);
  expect(what, (before.function != after.function) == by_function);
  expect(what, (before.exact != after.exact) == by_exact);
}

}  // namespace

int main() {
  struct Kernel {
    const void* function;
    uint32_t grid_and_block[6];
  } kernel{nullptr, {1, 2, 3, 4, 5, 6}};
  struct Config {
    const uint32_t* config;
    const void* function;
  } config{kernel.grid_and_block, nullptr};
  struct Size {
    uint64_t destination, source, bytes;
  } size{1, 2, 3};
  int other;
  expect_told_apart("kernel", LaunchParams::kernel, kernel,
                    [&](Kernel& k) { k.function = &other; }, true, true);
  expect_told_apart("kernel of a config", LaunchParams::kernel_config, config,
                    [&](Config& c) { c.function = &other; }, true, true);
  for (int i = 0; i < 6; i++) {
    expect_told_apart("grid or block", LaunchParams::kernel, kernel,
                      [&](Kernel& k) { k.grid_and_block[i]++; }, false, true);
    expect_told_apart("grid or block of a config", LaunchParams::kernel_config, config,
                      [&](Config&) { kernel.grid_and_block[i]++; }, false, true);
  }
  constexpr LaunchParams kSized[] = {LaunchParams::copy, LaunchParams::set};
  for (LaunchParams kind : kSized) {
    expect_told_apart("bytes", kind, size, [](Size& s) { s.bytes++; }, false, true);
    expect_told_apart("address", kind, size, [](Size& s) { s.destination = s.source++; }, false,
                      false);
  }
  expect("name", launch_signature(LaunchParams::unknown, 7, &size).exact !=
                     launch_signature(LaunchParams::unknown, 8, &size).exact);
}
