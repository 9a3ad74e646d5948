#include "ort/runtime.h"

#include <stdio.h>
#include <string.h>

namespace epprof::ort {

Api api{};
std::string runtime_version;

namespace {

template <typename Function>
void resolve(Function& function, const void* const* table, size_t slot) {
  function = reinterpret_cast<Function>(const_cast<void*>(table[slot]));
}

// Creates a profiling event and reads it back. Returns the problem, or an empty string.
std::string check_events() {
  const char* keys[] = {"op_name"};
  const char* values[] = {"Add"};
  ProfilingEvent* event = nullptr;
  std::string failed = consume_status(
      api.create_event(kNodeEvent, 7, 11, "probe", 1234, 56, keys, values, 1, &event));
  if (!failed.empty()) return failed;
  if (!event) return "no event was created";
  int32_t category = -1;
  const char *name = nullptr, *value = nullptr;
  int64_t timestamp = -1, duration = -1;
  for (Status* status :
       {api.event_category(event, &category), api.event_name(event, &name),
        api.event_timestamp(event, &timestamp), api.event_duration(event, &duration),
        api.event_arg(event, "op_name", &value)}) {
    std::string message = consume_status(status);
    if (failed.empty()) failed = message;
  }
  if (failed.empty() && (category != kNodeEvent || timestamp != 1234 || duration != 56 || !name ||
                         strcmp(name, "probe") != 0 || !value || strcmp(value, "Add") != 0)) {
    failed = "the event read back differs from the one created";
  }
  api.release_event(event);
  return failed;
}

}  // namespace

uint32_t runtime_api() {
  unsigned major = 0, minor = 0;
  sscanf(runtime_version.c_str(), "%u.%u", &major, &minor);
  return major > 1 ? UINT32_MAX : minor;
}

std::string consume_status(Status* status) {
  if (!status) return {};
  std::string message = api.error_message(status);
  api.release_status(status);
  return message.empty() ? "unknown error" : message;
}

Status* fail(const char* message) { return api.create_status(kFail, message); }

Status* load_api(const ApiBase* base, bool* refused) {
  *refused = true;
  unsigned major = 0, minor = 0;
  const char* version = base->get_version();
  if (!version) version = "";
  sscanf(version, "%u.%u", &major, &minor);
  bool new_enough = major > 1 || (major == 1 && minor >= kApiVersion);
  // onnxruntime-genai has its own copy of ONNX Runtime. Both copies read each other's events, so
  // their versions must be equal.
  if (api.create_status && !runtime_version.empty() && runtime_version != version) {
    std::string message = "ONNX Runtime " + runtime_version + " is observed in this process, and " +
                          std::string(version) + " cannot be at the same time";
    return fail(message.c_str());
  }
  // get_api prints to stderr if the runtime lacks the requested version, so request one that it
  // has.
  const void* const* table = base->get_api(new_enough ? kApiVersion : 1);
  if (!table) return nullptr;
  resolve(api.create_status, table, kCreateStatus);
  resolve(api.error_message, table, kGetErrorMessage);
  if (!new_enough) {
    std::string message = "ONNX Runtime " + std::string(version) +
                          " does not report its events to execution providers; 1.25 is the first "
                          "release that does. Install onnxruntime 1.25 or newer to record nodes.";
    return fail(message.c_str());
  }
  resolve(api.release_status, table, kReleaseStatus);
  resolve(api.device_type, table, kHardwareDeviceType);
  resolve(api.device_metadata, table, kHardwareDeviceMetadata);
  resolve(api.enable_run_profiling, table, kRunOptionsEnableProfiling);
  resolve(api.disable_run_profiling, table, kRunOptionsDisableProfiling);
  resolve(api.create_memory_info, table, kCreateMemoryInfo_V2);
  resolve(api.release_memory_info, table, kReleaseMemoryInfo);
  resolve(api.create_allocator, table, kCreateAllocator);
  resolve(api.release_allocator, table, kReleaseAllocator);
  resolve(api.allocator_statistics, table, kAllocatorGetStats);
  resolve(api.pairs, table, kGetKeyValuePairs);
  resolve(api.release_pairs, table, kReleaseKeyValuePairs);
  const void* const* (*ep_api)();
  resolve(ep_api, table, kGetEpApi);
  const void* const* ep_table = ep_api();
  if (!ep_table) {
    return fail(
        "This build of ONNX Runtime does not support plugin execution providers. Install an "
        "official onnxruntime wheel.");
  }
  resolve(api.create_ep_device, ep_table, kCreateEpDevice);
  resolve(api.create_event, ep_table, kCreateProfilingEvent);
  resolve(api.release_event, ep_table, kReleaseProfilingEvent);
  resolve(api.event_category, ep_table, kEventCategory);
  resolve(api.event_name, ep_table, kEventName);
  resolve(api.event_timestamp, ep_table, kEventTimestampUs);
  resolve(api.event_duration, ep_table, kEventDurationUs);
  resolve(api.event_arg, ep_table, kEventArgValue);
  resolve(api.add_events, ep_table, kAddEvents);
  std::string wrong = check_events();
  if (!wrong.empty()) {
    wrong = "The profiling interface of ONNX Runtime " + std::string(version) +
            " is not supported (" + wrong + "). Update epprof_nb or use an older onnxruntime.";
    return fail(wrong.c_str());
  }
  runtime_version = version;
  *refused = false;
  return nullptr;
}

}  // namespace epprof::ort
