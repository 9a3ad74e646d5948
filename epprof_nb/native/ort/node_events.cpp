#include "ort/node_events.h"

#include <stdlib.h>

#include <algorithm>
#include <exception>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/event_stack.h"
#include "core/fork.h"
#include "core/op_stack.h"
#include "ort/device_events.h"
#include "ort/interned_details.h"
#include "ort/run_observer.h"
#include "ort/runtime.h"
#include "ort/status.h"

namespace epprof::ort {
namespace {

struct Profiler : EpProfiler {
  uint32_t session;
  bool whole_session;
  bool has_file = false;       // a run's profile with a file, reported to `on_run_file` callbacks
  int64_t offset_ns = 0;       // ONNX Runtime's elapsed profiling time at ...
  int64_t start_clock_ns = 0;  // ... this time of our clock
  uint32_t run_name, open_name;
  std::atomic<bool> has_event{false};  // an event has started
  std::atomic<int32_t> nodes{0};
  std::atomic<int32_t> depth{0};  // events open now
  // The op of the run, which is the parent of events on pool threads, and its recording.
  std::atomic<uint64_t> run_op{0};
  std::atomic<uint64_t> run_epoch{0};
};

thread_local int32_t nodes_of_last_run = -1;
thread_local int events_open = 0;
ForkSafeMutex whole_mutex;
// The profiler by session.
std::map<uint32_t, const void*>& profiled_as_whole = *new std::map<uint32_t, const void*>;
thread_local uint64_t events_epoch = 0;  // the recording that `events_open` belongs to
// The ops that begin_run opened on this thread. A kernel of one session may run another session.
struct OpenedRun {
  uint64_t op;
  uint32_t session;
  uint64_t epoch;  // its recording
};
thread_local std::vector<OpenedRun> opened_runs;
// The run of the last node that ended on this thread, or kWholeSession; 0 if unknown.
thread_local uint64_t pool_times_reset_in = 0;
constexpr uint64_t kWholeSession = ~uint64_t{0};
thread_local bool run_file_expected = false;
std::atomic<void (*)()> file_opened{nullptr};
std::atomic<void (*)(uint32_t, uint64_t)> file_ending{nullptr};
ForkSafeMutex node_names_mutex;
std::set<std::string, std::less<>>& node_names = *new std::set<std::string, std::less<>>;
std::atomic<void (*)(const char*, size_t)> node_ended{nullptr};

constexpr std::string_view kNodeSuffix = "_kernel_time";
constexpr std::string_view kRunName = "model_run";
// A node is the third open event, inside the run and its executor. Nodes of subgraphs are deeper.
constexpr int32_t kNodeDepth = 3;

std::string_view text(const ProfilingEvent* event, const char* key) {
  const char* value = nullptr;
  if (Status* status = api.event_arg(event, key, &value)) {
    api.release_status(status);
    return {};
  }
  return value ? std::string_view(value) : std::string_view();
}

int64_t number(const ProfilingEvent* event, const char* key, int64_t otherwise) {
  std::string_view value = text(event, key);
  return value.empty() ? otherwise : strtoll(value.data(), nullptr, 10);
}

constexpr int64_t kUnknown = NodeUsageRecord::kUnknown;

// Reads the memory that ONNX Runtime 1.28 and later report. Returns false if there is none.
bool read_memory(const ProfilingEvent* event, NodeUsageRecord* usage) {
  usage->arena_held = number(event, "mem_arena_held", kUnknown);
  if (usage->arena_held == kUnknown) {
    usage->in_use = usage->requested = usage->peak = kUnknown;
    usage->arena_held_delta = usage->in_use_delta = usage->requested_delta = kUnknown;
    return false;
  }
  usage->in_use = number(event, "mem_bytes_in_use", kUnknown);
  usage->requested = number(event, "mem_bytes_requested_in_use", kUnknown);
  usage->peak = number(event, "mem_in_use_peak", kUnknown);
  usage->arena_held_delta = number(event, "mem_arena_held_delta", kUnknown);
  usage->in_use_delta = number(event, "mem_in_use_delta", kUnknown);
  usage->requested_delta = number(event, "mem_requested_in_use_delta", kUnknown);
  // ONNX Runtime reports 0 for allocators without this statistic.
  if (!usage->requested && usage->in_use > 0) usage->requested = usage->requested_delta = kUnknown;
  return true;
}

// The number after `key`, in microseconds; 0 if missing.
int64_t microseconds(std::string_view text, std::string_view key) {
  size_t at = text.find(key);
  return at == text.npos ? 0 : strtoll(text.data() + at + key.size(), nullptr, 10);
}

// Reads the time that the thread of a node spent on the thread pool. Returns false if the session
// has no pool.
bool read_threads(const ProfilingEvent* event, NodeUsageRecord* usage) {
  std::string_view text_of_event = text(event, "thread_scheduling_stats");
  usage->pool_start = usage->pool_wait = kUnknown;
  size_t at = text_of_event.find("\"main_thread\"");
  if (at == text_of_event.npos) return false;
  std::string_view thread = text_of_event.substr(at);
  thread = thread.substr(0, thread.find('}'));
  // "Distribution" contains "DistributionEnqueue".
  usage->pool_start = 1000 * microseconds(thread, "\"Distribution\": ");
  usage->pool_wait = 1000 * (microseconds(thread, "\"Wait\": ") +
                             microseconds(thread, "\"WaitRevoke\": "));
  return true;
}

// ONNX Runtime resets a thread's pool times when a profiled node ends. Runs without a profiler also
// add to them (1.31.1), so the first node of a run includes times of earlier runs.
void drop_times_of_earlier_runs(const Profiler& profiler, int64_t node_ns, NodeUsageRecord* usage) {
  uint64_t run = profiler.whole_session ? kWholeSession
                                        : profiler.run_op.load(std::memory_order_relaxed);
  bool is_first = !run || pool_times_reset_in != run;
  pool_times_reset_in = run;
  if (usage->pool_start == kUnknown) return;
  // Allow for rounding: these are three numbers of whole microseconds.
  bool too_long = node_ns >= 0 && usage->pool_start + usage->pool_wait > node_ns + 3000;
  if (is_first || too_long) usage->pool_start = usage->pool_wait = kUnknown;
}

std::string_view without_suffix(std::string_view event_name) {
  size_t stem = event_name.size() - kNodeSuffix.size();
  bool has_suffix = event_name.size() > kNodeSuffix.size() && event_name.substr(stem) == kNodeSuffix;
  return has_suffix ? event_name.substr(0, stem) : event_name;
}

void call_node_ended(const ProfilingEvent* event) {
  auto call = node_ended.load();
  int32_t category = -1;
  const char* name = nullptr;
  if (!call || !consume_status(api.event_category(event, &category)).empty() ||
      category != kNodeEvent || !consume_status(api.event_name(event, &name)).empty() || !name) {
    return;
  }
  std::string_view shown = without_suffix(name);
  {
    ForkLockGuard lock(node_names_mutex);
    if (!node_names.count(shown)) return;
  }
  call(shown.data(), shown.size());
}

void read_event(const Profiler& profiler, const ProfilingEvent* event, EventEnd* end) {
  int32_t category = -1;
  const char* name = nullptr;
  std::string failed = consume_status(api.event_category(event, &category));
  if (failed.empty()) failed = consume_status(api.event_name(event, &name));
  if (!failed.empty() || !name) return;
  std::string_view shown(name);
  EventDetails details;
  details.session = profiler.session;
  end->category = kOrtEvent;
  if (category == kNodeEvent) {
    end->category = kOrtNode;
    int64_t duration_us = -1;
    Status* status = api.event_duration(event, &duration_us);
    if (consume_status(status).empty() && duration_us >= 0) {
      end->duration_ns = duration_us * 1000;
    }
    shown = without_suffix(shown);
    details.node_index = int32_t(number(event, "node_index", -1));
    details.output_bytes = number(event, "output_size", -1);
    details.parameter_bytes = number(event, "parameter_size", -1);
    details.activation_bytes = number(event, "activation_size", -1);
    std::string_view op_type = text(event, "op_name");
    // These have subgraphs, even if they execute no node of them.
    if (op_type == "If" || op_type == "Loop" || op_type == "Scan") {
      set_has_subgraphs(profiler.session);
    }
    details.op_type = intern_event_text(op_type);
    details.provider = intern_event_text(text(event, "provider"));
    details.input_shapes = intern_event_text(text(event, "input_type_shape"));
    details.output_shapes = intern_event_text(text(event, "output_type_shape"));
  } else if (category == kSessionEvent && shown == kRunName) {
    end->category = kOrtRun;
  }
  end->name = intern_event_text(shown);
  end->payload_id = intern_event_details(details);
}

void set_profiled_as_whole(const Profiler& profiler, bool profiled) {
  ForkLockGuard lock(whole_mutex);
  if (profiled) {
    profiled_as_whole[profiler.session] = &profiler;
  } else {
    profiled_as_whole.erase(profiler.session);
  }
}

// ONNX Runtime does not end the event of a run that it refuses, such as for an input's type.
void end_events_of_run(const void* profiler, uint32_t session, int64_t since_ns) {
  EventDetails details;
  details.session = session;
  EventEnd end{epprof_now_ns(), -1, intern_event_text(kRunName), kOrtRun,
               intern_event_details(details)};
  events_open = std::max(0, events_open - end_events_of(profiler, since_ns, end));
}

// ONNX Runtime releases a run's profiler on the run's thread before the run returns, even if it
// skips EndProfiling. It does so for a CUDA graph replay (1.31.1).
void release(EpProfiler* self) {
  auto* profiler = static_cast<Profiler*>(self);
  if (profiler->whole_session) set_profiled_as_whole(*profiler, false);
  if (!profiler->whole_session) {
    bool is_open = profiler->depth.load(std::memory_order_relaxed) != 0;
    if (is_open) end_events_of_run(profiler, profiler->session, 0);
    bool seen = recording_ops.load(std::memory_order_relaxed) &&
                profiler->run_epoch.load(std::memory_order_acquire) ==
                    epoch.load(std::memory_order_relaxed);
    nodes_of_last_run = seen ? profiler->nodes.load(std::memory_order_relaxed) : -1;
  }
  delete profiler;
}

Status* start_profiling(EpProfiler* self, int64_t offset_ns) {
  auto& profiler = *static_cast<Profiler*>(self);
  profiler.start_clock_ns = epprof_now_ns();
  profiler.offset_ns = offset_ns;
  if (profiler.whole_session) set_profiled_as_whole(profiler, true);
  if (profiler.has_file) file_opened.load()();
  return nullptr;
}

Status* start_event(EpProfiler* self, uint64_t id) {
  if (!recording_ops.load(std::memory_order_relaxed)) {
    static_cast<Profiler*>(self)->has_event.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  return as_status([&] {
    auto& profiler = *static_cast<Profiler*>(self);
    profiler.depth.fetch_add(1, std::memory_order_relaxed);
    uint64_t now = epoch.load(std::memory_order_relaxed);
    if (events_epoch != now) events_open = 0;
    events_epoch = now;
    // Runs of other sessions may have used this thread since.
    if (!events_open && profiler.whole_session) pool_times_reset_in = 0;
    events_open++;
    bool in_run = profiler.run_epoch.load(std::memory_order_acquire) == now;
    uint64_t run_op = in_run ? profiler.run_op.load(std::memory_order_relaxed) : 0;
    // The first event of a run's profiler is the run itself.
    bool is_run = !profiler.whole_session && !profiler.has_event.exchange(true);
    uint64_t opened = is_run ? opened_run(profiler.session) : 0;
    if (opened) {
      profiler.run_op.store(opened, std::memory_order_relaxed);
      profiler.run_epoch.store(now, std::memory_order_release);
      return;
    }
    uint64_t op = is_run ? push_event(self, uint32_t(id), 0, profiler.run_name, kOrtRun)
                         : push_event(self, uint32_t(id), run_op, profiler.open_name, kOrtEvent);
    if (op && is_run) {
      profiler.run_op.store(op, std::memory_order_relaxed);
      profiler.run_epoch.store(now, std::memory_order_release);
      set_profiled_run(profiler.session, op);
    }
  });
}

Status* stop_event(EpProfiler* self, uint64_t id, const ProfilingEvent* event) {
  if (!recording_ops.load(std::memory_order_relaxed)) {
    if (!node_ended.load(std::memory_order_relaxed)) return nullptr;
    return as_status([&] { call_node_ended(event); });
  }
  int64_t now = epprof_now_ns();
  return as_status([&] {
    if (!is_event_open(self, uint32_t(id))) return;  // started before the recording
    if (events_open) events_open--;
    EventEnd end{now, -1, 0, kOrtEvent, 0};
    auto& profiler = *static_cast<Profiler*>(self);
    int32_t depth = profiler.depth.fetch_sub(1, std::memory_order_relaxed);
    read_event(profiler, event, &end);
    if (end.category == kOrtNode) {
      profiler.nodes.fetch_add(1, std::memory_order_relaxed);
      if (depth > kNodeDepth) set_has_subgraphs(profiler.session);
    }
    NodeUsageRecord usage;
    bool is_node = end.category == kOrtNode;
    bool has_usage = is_node && read_memory(event, &usage);
    has_usage |= is_node && read_threads(event, &usage);
    if (is_node) drop_times_of_earlier_runs(profiler, end.duration_ns, &usage);
    usage.op_id = end_event(self, uint32_t(id), end);
    if (has_usage && usage.op_id) log_node_usage(usage);
  });
}

Status* end_profiling(EpProfiler* self, EventsContainer* container) {
  return as_status([&] {
    auto& profiler = *static_cast<Profiler*>(self);
    if (profiler.whole_session) set_profiled_as_whole(profiler, false);
    uint64_t run_op = 0;
    if (!profiler.whole_session) {
      if (!profiler.has_file) return;
      if (profiler.run_epoch.load(std::memory_order_acquire) ==
          epoch.load(std::memory_order_relaxed)) {
        run_op = profiler.run_op.load(std::memory_order_relaxed);
      }
      file_ending.load()(profiler.session, run_op);
      if (!run_op) return;
    }
    flush_device_events({profiler.session, run_op}, profiler.offset_ns, profiler.start_clock_ns,
                        container);
  });
}

}  // namespace

void on_run_file(void (*opened)(), void (*ending)(uint32_t, uint64_t)) {
  file_opened = opened;
  file_ending = ending;
}

void expect_run_file(bool expected) { run_file_expected = expected; }

void on_node_end(void (*ended)(const char*, size_t), std::set<std::string, std::less<>> names) {
  ForkLockGuard lock(node_names_mutex);
  node_names = std::move(names);
  node_ended = ended;
}

int32_t take_nodes_of_last_run() {
  int32_t nodes = nodes_of_last_run;
  nodes_of_last_run = -1;
  return nodes;
}

uint64_t begin_run(uint32_t session) {
  uint64_t op = push_run_op(session);
  if (op) opened_runs.push_back({op, session, epoch.load(std::memory_order_relaxed)});
  return op;
}

uint64_t opened_run(uint32_t session) {
  if (opened_runs.empty()) return 0;
  const OpenedRun& innermost = opened_runs.back();
  bool is_now = innermost.epoch == epoch.load(std::memory_order_relaxed);
  return is_now && innermost.session == session ? innermost.op : 0;
}

uint64_t push_run_op(uint32_t session) {
  EventDetails details;
  details.session = session;
  return push_op(intern_event_text(kRunName), kOrtRun,
                 intern_event_details(details), nullptr, 0);
}

bool is_profiled_as_whole(uint32_t session) {
  ForkLockGuard lock(whole_mutex);
  return profiled_as_whole.count(session) != 0;
}

void end_refused_run(uint32_t session, int64_t since_ns) {
  const void* profiler = nullptr;
  {
    ForkLockGuard lock(whole_mutex);
    auto found = profiled_as_whole.find(session);
    if (found != profiled_as_whole.end()) profiler = found->second;
  }
  if (profiler) end_events_of_run(profiler, session, since_ns);
}

int open_events() {
  return events_epoch == epoch.load(std::memory_order_relaxed) ? events_open : 0;
}

void end_run(uint64_t op_id) {
  if (!op_id) return;
  auto same_op = [op_id](const OpenedRun& run) { return run.op == op_id; };
  opened_runs.erase(std::find_if(opened_runs.begin(), opened_runs.end(), same_op),
                    opened_runs.end());
  pop_op(op_id);
}

EpProfiler* make_profiler(uint32_t session, bool whole_session) {
  if (!session) return nullptr;
  auto* profiler = new Profiler;
  profiler->version = kApiVersion;
  profiler->release = release;
  profiler->start_profiling = start_profiling;
  profiler->start_event = start_event;
  profiler->stop_event = stop_event;
  profiler->end_profiling = end_profiling;
  profiler->session = session;
  profiler->whole_session = whole_session;
  if (!whole_session && file_opened.load()) {
    profiler->has_file = run_file_expected;
    run_file_expected = false;
  }
  profiler->run_name = intern_event_text(kRunName);
  profiler->open_name = intern_event_text("(not ended yet)");
  return profiler;
}

}  // namespace epprof::ort
