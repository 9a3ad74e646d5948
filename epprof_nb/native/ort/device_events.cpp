#include "ort/device_events.h"

#include <unistd.h>

#include <unordered_map>

#include "core/fork.h"
#include "ort/runtime.h"
#include "ort/status.h"

namespace epprof::ort {
namespace {

struct Hash {
  size_t operator()(const Destination& d) const {
    return d.run_op * 0x9E3779B97F4A7C15u + d.session;
  }
};

using PendingEvents = std::unordered_map<Destination, std::vector<DeviceEvent>, Hash>;

ForkSafeMutex events_mutex;
PendingEvents& pending_events = *new PendingEvents;

// Before 1.31, ONNX Runtime does not escape names and args in its JSON.
bool runtime_escapes() { return runtime_api() >= 31; }

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

void add_device_event(Destination to, DeviceEvent event) {
  ForkLockGuard lock(events_mutex);
  pending_events[to].push_back(std::move(event));
}

void flush_device_events(Destination to, int64_t offset_ns, int64_t start_clock_ns,
                         EventsContainer* container) {
  std::vector<DeviceEvent> events;
  {
    ForkLockGuard lock(events_mutex);
    auto found = pending_events.find(to);
    if (found == pending_events.end()) return;
    events = std::move(found->second);
    pending_events.erase(found);
  }
  bool escape = !runtime_escapes();
  for (DeviceEvent& event : events) {
    if (escape) {
      event.name = escaped(event.name);
      for (auto& arg : event.args) arg.second = escaped(arg.second);
    }
    std::vector<const char*> keys, values;
    for (const auto& arg : event.args) {
      keys.push_back(arg.first.c_str());
      values.push_back(arg.second.c_str());
    }
    ProfilingEvent* made = nullptr;
    check(api.create_event(event.category, int32_t(getpid()), event.thread_id, event.name.c_str(),
                           (offset_ns + event.start_ns - start_clock_ns) / 1000,
                           event.duration_ns / 1000, keys.data(), values.data(), keys.size(),
                           &made));
    Status* status = api.add_events(container, &made, 1);
    api.release_event(made);
    check(status);
  }
}

}  // namespace epprof::ort
