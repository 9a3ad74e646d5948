// How tests steer the stand-in and look into it.
#include <stdio.h>

#include "state.h"

using namespace fake;

extern "C" {

// Runs `kernel(argument)` on a stream, with the allocations of `pointers` open to it.
int fake_launch(Stream* given, void (*kernel)(void*), void* argument, const uint64_t* pointers,
                size_t count) {
  std::lock_guard lock(mutex);
  Stream* stream = nullptr;
  if (int failed = usable("cuLaunchKernel", given, &stream)) return failed;
  std::vector<uint64_t> used(pointers, pointers + count);
  for (uint64_t pointer : used) {
    Allocation* found = allocation_at(pointer);
    if (!found) {
      misuse("a kernel uses memory that was freed");
      sticky = kIllegalAddress;
      return kIllegalAddress;
    }
    if (found->device >= 0 && found->device != stream->context->device) {
      misuse("a kernel uses memory of another device");
    }
  }
  if (stream->capturing) return 0;
  stream->add([=] {
    for (uint64_t pointer : used) set_open(pointer, true);
    kernel(argument);
    for (uint64_t pointer : used) set_open(pointer, false);
  });
  return 0;
}
// Fails the call after `skip` more of them, once.
void fake_fault(const char* name, int result, int skip) {
  std::lock_guard lock(mutex);
  faults[name] = {result, skip};
}
void fake_set_memory(int device, size_t bytes) {
  std::lock_guard lock(mutex);
  total_bytes[device] = bytes;
}
size_t fake_used(int device) {
  std::lock_guard lock(mutex);
  return used_bytes[device];
}
void fake_set_sticky(int error) { sticky = error; }
void fake_hold_allocations(int hold) { allocations_wait = hold != 0; }
void fake_set_delay(int microseconds) { delay_us = microseconds; }
void fake_capture(Stream* stream, int capturing) {
  std::lock_guard lock(mutex);
  stream->capturing = capturing;
}
// Captures in progress, graphs, and executable ones.
void fake_graphs(size_t* in_progress, size_t* made, size_t* executable) {
  std::lock_guard lock(mutex);
  *in_progress = captures.size();
  *made = graphs.size();
  *executable = executables.size();
}
size_t fake_streams(int device) {
  std::lock_guard lock(mutex);
  return contexts[device] ? contexts[device]->streams.size() : 0;
}
long fake_calls(const char* name) {
  std::lock_guard lock(mutex);
  return calls[name];
}
// Copies the descriptions of misuse since the last call into `text`, one a line.
void fake_misuse(char* text, size_t size) {
  std::lock_guard lock(mutex);
  std::string all;
  for (const std::string& line : misuses) all += line + "\n";
  misuses.clear();
  snprintf(text, size, "%s", all.c_str());
}

}  // extern "C"
