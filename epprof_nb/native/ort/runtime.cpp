#include "ort/runtime.h"

#include <stdio.h>
#include <string.h>

namespace epprof::ort {

Api api{};
std::string runtime;

namespace {

template <typename Function>
void take(Function& function, const void* const* table, size_t slot) {
  function = reinterpret_cast<Function>(const_cast<void*>(table[slot]));
}

// Makes a profiling event, reads all of it back, and says what came out wrong; empty: nothing.
std::string check_events() {
  const char* keys[] = {"op_name"};
  const char* values[] = {"Add"};
  ProfilingEvent* event = nullptr;
  std::string failed =
      take_message(api.create_event(kNodeEvent, 7, 11, "probe", 1234, 56, keys, values, 1, &event));
  if (!failed.empty()) return failed;
  if (!event) return "no event was made";
  int32_t category = -1;
  const char *name = nullptr, *value = nullptr;
  int64_t timestamp = -1, duration = -1;
  for (Status* status :
       {api.event_category(event, &category), api.event_name(event, &name),
        api.event_timestamp(event, &timestamp), api.event_duration(event, &duration),
        api.event_arg(event, "op_name", &value)}) {
    std::string message = take_message(status);
    if (failed.empty()) failed = message;
  }
  if (failed.empty() && (category != kNodeEvent || timestamp != 1234 || duration != 56 || !name ||
                         strcmp(name, "probe") != 0 || !value || strcmp(value, "Add") != 0)) {
    failed = "the event that was made reads back as another one";
  }
  api.release_event(event);
  return failed;
}

}  // namespace

std::string take_message(Status* status) {
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
  sscanf(version, "%u.%u", &major, &minor);
  bool new_enough = major > 1 || (major == 1 && minor >= kApiVersion);
  // Asking for a version that the runtime does not have prints to stderr: ask for what it has.
  const void* const* table = base->get_api(new_enough ? kApiVersion : 1);
  if (!table) return nullptr;
  take(api.create_status, table, kCreateStatus);
  take(api.error_message, table, kGetErrorMessage);
  if (!new_enough) {
    std::string message = "ONNX Runtime " + std::string(version) +
                          " tells execution providers nothing about its events; 1.25 is the first "
                          "that does. Install onnxruntime 1.25 or newer to see its nodes.";
    return fail(message.c_str());
  }
  take(api.release_status, table, kReleaseStatus);
  take(api.session_config, table, kGetSessionConfigEntry);
  take(api.device_type, table, kHardwareDeviceType);
  take(api.enable_run_profiling, table, kRunOptionsEnableProfiling);
  take(api.disable_run_profiling, table, kRunOptionsDisableProfiling);
  const void* const* (*ep_api)();
  take(ep_api, table, kGetEpApi);
  const void* const* ep_table = ep_api();
  if (!ep_table) return fail("this build of ONNX Runtime has no interface for plugin libraries");
  take(api.create_ep_device, ep_table, kCreateEpDevice);
  take(api.create_event, ep_table, kCreateProfilingEvent);
  take(api.release_event, ep_table, kReleaseProfilingEvent);
  take(api.event_category, ep_table, kEventCategory);
  take(api.event_name, ep_table, kEventName);
  take(api.event_timestamp, ep_table, kEventTimestampUs);
  take(api.event_duration, ep_table, kEventDurationUs);
  take(api.event_arg, ep_table, kEventArgValue);
  take(api.add_events, ep_table, kAddEvents);
  std::string wrong = check_events();
  if (!wrong.empty()) {
    wrong = "the profiling interface of ONNX Runtime " + std::string(version) +
            " is not the one this version of epprof_nb knows (" + wrong +
            "). Update epprof_nb, or use an older onnxruntime.";
    return fail(wrong.c_str());
  }
  runtime = version;
  *refused = false;
  return nullptr;
}

}  // namespace epprof::ort
