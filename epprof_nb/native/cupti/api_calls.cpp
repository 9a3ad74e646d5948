#include "cupti/api_calls.h"

#include <string.h>

#include <initializer_list>

#include "cupti/library.h"

namespace epprof {
namespace {

bool starts_with(const char* name, const char* prefix) {
  return strncmp(name, prefix, strlen(prefix)) == 0;
}

// Position of the arguments in the parameters of a function of CUDA's driver that launches work.
LaunchParams launch_params(const char* function) {
  if (starts_with(function, "cuLaunchKernelEx")) return LaunchParams::kernel_config;
  if (!strcmp(function, "cuLaunchKernel") || starts_with(function, "cuLaunchKernel_") ||
      (starts_with(function, "cuLaunchCooperativeKernel") && !strstr(function, "Multi"))) {
    return LaunchParams::kernel;
  }
  // The first versions of some functions take 32-bit sizes, so their structs are shorter.
  bool has_wide_sizes = strstr(function, "_v2") != nullptr;
  for (const char* copy : {"cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemcpyDtoD"}) {
    if (has_wide_sizes && starts_with(function, copy)) return LaunchParams::copy;
  }
  if (!strcmp(function, "cuMemcpy") || starts_with(function, "cuMemcpy_") ||
      starts_with(function, "cuMemcpyAsync")) {
    return LaunchParams::copy;
  }
  has_wide_sizes |= strstr(function, "Async") != nullptr;
  for (const char* set : {"cuMemsetD8", "cuMemsetD16", "cuMemsetD32"}) {
    if (has_wide_sizes && starts_with(function, set)) return LaunchParams::set;
  }
  return LaunchParams::unknown;
}

struct StreamCallParams {
  const char* prefix;
  StreamCall call;
  int8_t event_at, stream_at;
};

StreamCallParams stream_call(const char* function) {
  constexpr StreamCallParams kKnown[] = {
      {"cuEventRecord", StreamCall::event_record, 0, 8},
      {"cuEventDestroy", StreamCall::event_destroy, 0, -1},
      {"cuEventSynchronize", StreamCall::event_synchronize, 0, -1},
      {"cuEventQuery", StreamCall::event_synchronize, 0, -1},
      {"cuStreamWaitEvent", StreamCall::stream_wait_event, 8, 0},
      {"cuStreamSynchronize", StreamCall::stream_synchronize, -1, 0},
      {"cuStreamQuery", StreamCall::stream_synchronize, -1, 0},
      {"cuCtxSynchronize", StreamCall::context_synchronize, -1, -1},
  };
  for (const StreamCallParams& known : kKnown) {
    if (starts_with(function, known.prefix)) return known;
  }
  return {nullptr, StreamCall::none, -1, -1};
}

// Position of the stream in the parameters of such a function; -1: unknown.
int16_t stream_position(const char* function, LaunchParams params) {
  switch (params) {
    case LaunchParams::kernel: return 40;
    case LaunchParams::kernel_config: return 32;  // in CUlaunchConfig, to which they point
    case LaunchParams::copy:
    case LaunchParams::set: return strstr(function, "Async") ? 24 : -1;
    case LaunchParams::unknown: return starts_with(function, "cuGraphLaunch") ? 8 : -1;
  }
  return -1;
}

}  // namespace

const char* api_call_name(uint32_t domain, uint32_t cbid) {
  const char* name = nullptr;
  return cupti.GetCallbackName(domain, cbid, &name) == 0 ? name : nullptr;
}

bool is_recorded_call(const char* name) {
  size_t domain = starts_with(name, "cuda") ? 4 : 2;
  for (const char* prefix :
       {"Launch", "GraphLaunch", "Memcpy", "Memset", "MemPrefetch", "MemAlloc", "Malloc", "MemFree",
        "Free", "MemHostAlloc", "HostAlloc", "MemHostRegister", "HostRegister", "MemHostUnregister",
        "HostUnregister", "MemCreate", "MemMap", "MemUnmap", "MemRelease", "MemSetAccess",
        "MemAddress", "EventCreate", "EventDestroy", "StreamCreate", "StreamDestroy", "ModuleLoad",
        "ModuleUnload", "LibraryLoad", "GraphInstantiate", "StreamBeginCapture", "StreamEndCapture",
        "EventQuery", "StreamQuery", "EventRecord", "StreamWaitEvent"}) {
    if (strlen(name) > domain && starts_with(name + domain, prefix)) return true;
  }
  return strstr(name, "Synchronize") != nullptr;
}

void select_api_records(bool on) {
  for (uint32_t domain : {kDriverDomain, kRuntimeDomain}) {
    auto* enable = domain == kDriverDomain ? cupti.ActivityEnableDriverApi
                                           : cupti.ActivityEnableRuntimeApi;
    if (!enable) continue;
    for (uint32_t cbid = 1; cbid < kCallbackIds; cbid++) {
      const char* name = api_call_name(domain, cbid);
      if (!name) continue;
      if (!is_recorded_call(name)) enable(cbid, on);
    }
  }
}

void ApiCalls::fill() {
  if (filled_) return;
  filled_ = true;
  for (uint32_t cbid = 1; cbid < kCallbackIds; cbid++) {
    const char* name = api_call_name(kDriverDomain, cbid);
    if (!name) continue;
    DriverCall& call = driver_[cbid];
    call.begins_capture = starts_with(name, "cuStreamBeginCapture");
    call.ends_capture = starts_with(name, "cuStreamEndCapture");
    call.is_launch = starts_with(name, "cuLaunch") || starts_with(name, "cuMemcpy") ||
                     starts_with(name, "cuMemset");
    call.params = launch_params(name);
    call.is_per_thread = strstr(name, "_ptsz");
    call.stream_at = stream_position(name, call.params);
    StreamCallParams of_stream = stream_call(name);
    call.of_stream = of_stream.call;
    call.event_at = of_stream.event_at;
    call.wait_stream_at = of_stream.stream_at;
  }
}

}  // namespace epprof
