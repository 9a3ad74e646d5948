#include <string.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/fork.h"
#include "core/thread_state.h"
#include "delays/api.h"
#include "ep/cuda/driver.h"
#include "gpu/launched_streams.h"

namespace epprof {
namespace {

using namespace ep;

// It needs no newer driver than CUDA 9, and any device since Maxwell.
constexpr char kKernel[] = "epprof_delay";
constexpr char kCode[] = R"(
.version 6.0
.target sm_50
.address_size 64

.visible .entry epprof_delay(.param .u64 length, .param .u64 times)
{
  .reg .pred %is_early;
  .reg .u64 %length, %times, %begin, %now, %passed;

  ld.param.u64 %length, [length];
  ld.param.u64 %times, [times];
  mov.u64 %begin, %globaltimer;
SPIN:
  mov.u64 %now, %globaltimer;
  sub.u64 %passed, %now, %begin;
  setp.lt.u64 %is_early, %passed, %length;
  @%is_early bra SPIN;
  st.u64 [%times], %begin;
  st.u64 [%times+8], %now;
  ret;
}
)";

// The device writes them to pinned memory.
struct Times {
  volatile uint64_t begin, end;  // end is 0 until then
};
constexpr uint32_t kDelays = 4096;  // that have not ended

struct Launched {
  uint32_t at, tag;
};

// What is in a context.
struct Place {
  CudaContext context;
  CudaModule module = nullptr;
  CudaFunction kernel = nullptr;
  Times* times = nullptr;
  std::vector<uint32_t> free;
  std::vector<Launched> launched;

  // Calls `each(tag, ns)` for the delays that have ended, while it returns true.
  template <typename Each>
  void take(Each each) {
    size_t kept = 0;
    for (size_t i = 0; i < launched.size(); i++) {
      const Launched& delay = launched[i];
      Times& of_delay = times[delay.at];
      if (of_delay.end && each(delay.tag, of_delay.end - of_delay.begin)) {
        free.push_back(delay.at);
      } else {
        launched[kept++] = delay;
      }
    }
    launched.resize(kept);
  }
};

ForkSafeMutex mutex;  // never held in a call of the driver
std::vector<std::shared_ptr<Place>>& places = *new std::vector<std::shared_ptr<Place>>;
ResetInChild reset([] { new std::vector<std::shared_ptr<Place>>(std::move(places)); });

class CurrentContext {
 public:
  explicit CurrentContext(CudaContext context) : result(cuda.CtxPushCurrent(context)) {}
  ~CurrentContext() {
    CudaContext popped = nullptr;
    if (result == kSuccess) cuda.CtxPopCurrent(&popped);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  const int result;
};

// A recording that another part of the program has begun leaves out these calls.
class InProfiler {
 public:
  InProfiler() : t_(this_thread()) {
    if (t_) t_->in_profiler = true;
  }
  ~InProfiler() {
    if (t_) t_->in_profiler = false;
  }

 private:
  ThreadState* t_;
};

std::shared_ptr<Place> place_of(void* context) {
  for (const auto& place : places) {
    if (place->context == context) return place;
  }
  return nullptr;
}

void release(Place& place) {
  DuringCaptures allowed;
  CurrentContext current(place.context);
  if (current.result != kSuccess) return;
  if (place.module) cuda.ModuleUnload(place.module);
  if (place.times) cuda.MemFreeHost(place.times);
}

int launch(const Place& place, uint32_t at, uint64_t length_ns, CudaStream stream) {
  Times* times = place.times + at;
  void* parameters[] = {&length_ns, &times};
  return cuda.LaunchKernel(place.kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}

// It may take longer than others: the driver loads code when it is used first.
std::string first_launch(const Place& place) {
  CudaStream stream = nullptr;
  if (int failed = cuda.StreamCreate(&stream, kNonBlocking)) {
    return cuda_error("cuStreamCreate", failed);
  }
  int failed = launch(place, 0, 0, stream);
  if (!failed) failed = cuda.StreamSynchronize(stream);
  cuda.StreamDestroy(stream);
  return failed ? cuda_error("cuLaunchKernel", failed) : "";
}

std::string prepare(Place& place) {
  DuringCaptures allowed;
  CurrentContext current(place.context);
  if (current.result != kSuccess) return cuda_error("cuCtxPushCurrent", current.result);
  if (int failed = cuda.ModuleLoadData(&place.module, kCode)) {
    return cuda_error("cuModuleLoadData", failed);
  }
  if (int failed = cuda.ModuleGetFunction(&place.kernel, place.module, kKernel)) {
    return cuda_error("cuModuleGetFunction", failed);
  }
  void* memory = nullptr;
  if (int failed = cuda.MemHostAlloc(&memory, kDelays * sizeof(Times), kPortable)) {
    return cuda_error("cuMemHostAlloc", failed);
  }
  place.times = static_cast<Times*>(memory);
  for (uint32_t i = kDelays; i > 0; i--) place.free.push_back(i - 1);
  return first_launch(place);
}

// Whether a stream of the context is being captured: to wait would end the capture.
bool is_capturing(CudaContext context) {
  for (const LaunchedStream& known : launched_streams()) {
    if (known.context != context) continue;
    UsedStream used(known.id);
    if (used && ep::is_capturing(static_cast<CudaStream>(used.stream()))) return true;
  }
  return false;
}

std::vector<std::shared_ptr<Place>> all_places() {
  ForkLockGuard lock(mutex);
  return places;
}

char* message(const std::string& text) { return text.empty() ? nullptr : strdup(text.c_str()); }

// The context takes all of it along.
void forget(void* context) {
  ForkLockGuard lock(mutex);
  places.erase(std::remove_if(places.begin(), places.end(),
                              [=](const auto& place) { return place->context == context; }),
               places.end());
}

}  // namespace
}  // namespace epprof

using namespace epprof;

extern "C" {

void epprof_each_launched_stream(void (*each)(const epprof_launched_stream*, void*), void* data) {
  for (const LaunchedStream& stream : launched_streams()) {
    epprof_launched_stream row{stream.id, stream.is_new, stream.exists,
                               stream.correlations.data(), stream.correlations.size()};
    each(&row, data);
  }
}

char* epprof_delays_begin(void) {
  InProfiler own;
  forget_context = forget;
  for (const LaunchedStream& stream : launched_streams()) {
    auto context = static_cast<ep::CudaContext>(stream.context);
    {
      ForkLockGuard lock(mutex);
      if (!stream.exists || place_of(context)) continue;
    }
    auto place = std::make_shared<Place>();
    place->context = context;
    std::string failed = prepare(*place);
    if (!failed.empty()) {
      release(*place);
      return message(failed);
    }
    ForkLockGuard lock(mutex);
    places.push_back(place);
  }
  return nullptr;
}

void epprof_delays_end(void) {
  InProfiler own;
  std::vector<std::shared_ptr<Place>> ended;
  {
    ForkLockGuard lock(mutex);
    ended.swap(places);
    for (const auto& place : ended) place->take([](uint32_t, uint64_t) { return true; });
  }
  for (const auto& place : ended) {
    if (place->launched.empty()) release(*place);
  }
}

epprof_delay_result epprof_delays_launch(uint64_t id, uint32_t tag, uint64_t length_ns,
                                         int* cuda_result) {
  UsedStream used(id);
  *cuda_result = ep::kSuccess;
  if (!used) return EPPROF_DELAY_DESTROYED;
  if (used.is_of_other_thread()) return EPPROF_DELAY_OTHER_THREAD;
  auto stream = static_cast<ep::CudaStream>(used.stream());
  InProfiler own;
  CurrentContext current(static_cast<ep::CudaContext>(used.context()));
  *cuda_result = current.result;
  if (current.result != ep::kSuccess) return EPPROF_DELAY_FAILED;
  if (ep::is_capturing(stream)) return EPPROF_DELAY_CAPTURING;
  std::shared_ptr<Place> place;
  uint32_t at = 0;
  {
    ForkLockGuard lock(mutex);
    place = place_of(used.context());
    if (!place) return EPPROF_DELAY_DESTROYED;
    if (place->free.empty()) return EPPROF_DELAY_TOO_MANY;
    at = place->free.back();
    place->free.pop_back();
    place->times[at].begin = place->times[at].end = 0;
    place->launched.push_back({at, tag});
  }
  *cuda_result = launch(*place, at, length_ns, stream);
  if (*cuda_result == ep::kSuccess) return EPPROF_DELAYED;
  ForkLockGuard lock(mutex);
  auto& launched = place->launched;
  launched.erase(std::remove_if(launched.begin(), launched.end(),
                                [=](const Launched& delay) { return delay.at == at; }),
                 launched.end());
  place->free.push_back(at);
  return EPPROF_DELAY_FAILED;
}

char* epprof_delays_wait(void) {
  InProfiler own;
  for (const auto& place : all_places()) {
    CurrentContext current(place->context);
    if (current.result != ep::kSuccess) {
      return message(ep::cuda_error("cuCtxPushCurrent", current.result));
    }
    if (is_capturing(place->context)) {
      return message("a stream is still being captured when the code ends");
    }
    if (int failed = ep::cuda.CtxSynchronize()) {
      return message(ep::cuda_error("cuCtxSynchronize", failed));
    }
  }
  return nullptr;
}

size_t epprof_delays_take(uint32_t* tags, uint64_t* lengths, size_t room) {
  size_t taken = 0;
  ForkLockGuard lock(mutex);
  for (const auto& place : places) {
    place->take([&](uint32_t tag, uint64_t length) {
      if (taken == room) return false;
      tags[taken] = tag;
      lengths[taken++] = length;
      return true;
    });
  }
  return taken;
}

}  // extern "C"
