#include "state.h"

#include <sys/mman.h>

namespace fake {

void misuse(const std::string& text) { misuses.push_back(text); }

int enter(const char* name) {
  calls[name]++;
  if (sticky) return sticky;
  auto fault = faults.find(name);
  if (fault != faults.end()) {
    auto& [result, skip] = fault->second;
    if (skip-- <= 0) {
      int failed = result;
      faults.erase(fault);
      return failed;
    }
  }
  return initialized ? 0 : kNotInitialized;
}

Allocation* allocation_at(uintptr_t address) {
  auto after = allocations.upper_bound(address);
  if (after == allocations.begin()) return nullptr;
  Allocation& found = std::prev(after)->second;
  return address < found.begin + found.bytes ? &found : nullptr;
}

static std::mutex& opening = *new std::mutex;
static std::map<uintptr_t, int>& open_counts = *new std::map<uintptr_t, int>;

void set_open(uintptr_t address, bool open) {
  uintptr_t begin = 0;
  size_t mapped = 0;
  {
    std::lock_guard lock(mutex);
    Allocation* found = allocation_at(address);
    if (!found || found->device < 0) return;
    begin = found->begin;
    mapped = found->mapped;
  }
  std::lock_guard lock(opening);
  int& count = open_counts[begin];
  count += open ? 1 : -1;
  if (count == (open ? 1 : 0)) {
    mprotect(reinterpret_cast<void*>(begin), mapped, open ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
}

Stream* stream_of(Stream* given) {
  if (given) {
    for (Context* context : contexts) {
      if (context && context->streams.count(given)) return given;
    }
    misuse("a stream that was destroyed, or is none");
    return nullptr;
  }
  if (current.empty()) return nullptr;
  Context* context = current.back();
  if (!context->default_stream) {
    context->default_stream = std::make_unique<Stream>();
    context->default_stream->context = context;
  }
  return context->default_stream.get();
}

int unsafe(const char* name) {
  if (int failed = enter(name)) return failed;
  if (interaction_mode == kRelaxedMode) return 0;
  int result = 0;
  for (Capture* capture : captures) {
    bool own = capture->thread == std::this_thread::get_id() && capture->mode != kRelaxedMode;
    if (own || (interaction_mode == kGlobalMode && capture->mode == kGlobalMode)) {
      capture->invalid = true;
      result = kCaptureUnsupported;
    }
  }
  return result;
}

int usable(const char* name, Stream* given, Stream** stream) {
  int failed = enter(name);
  if (current.empty()) {
    misuse(std::string(name) + " without a current context");
    return kInvalidContext;
  }
  *stream = stream_of(given);
  if (!*stream) return kInvalidHandle;
  if ((*stream)->context != current.back()) {
    misuse(std::string(name) + " on a stream of another device's context");
  }
  return failed;
}

void wait_for(Context* context, std::unique_lock<std::mutex>& lock) {
  changed.wait(lock, [=] {
    for (Stream* stream : context->streams) {
      if (stream->pending) return false;
    }
    return !context->default_stream || !context->default_stream->pending;
  });
}

}  // namespace fake
