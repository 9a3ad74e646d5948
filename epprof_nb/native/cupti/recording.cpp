// Recording sessions: CUPTI's activity buffers go through the decoder into the activity store.
#include "cupti/recording.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <string>

#include "core/clock.h"
#include "core/external_ids.h"
#include "core/fork.h"
#include "core/launch_log.h"
#include "cupti/api.h"
#include "cupti/first_launch.h"
#include "cupti/graph_nodes.h"

namespace epprof {

Recording* current_recording = new Recording;

namespace {

ResetInChild reset_recording([] {
  const RecordLayout& layout = current_recording->layout;  // of the libcupti that is loaded
  current_recording = new Recording;
  current_recording->layout = layout;
});

// CUpti_ExternalCorrelationKind, CUpti_ActivityKind, CUpti_ActivityThreadIdType. PyTorch's profiler
// uses the kinds CUSTOM0 and CUSTOM1.
constexpr uint32_t kExternalCustom2 = 5;
constexpr uint32_t kDefaultThreadIds = 0, kSystemThreadIds = 1;
constexpr uint32_t kZeroedBuffers = 5;  // CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER

char* message(const std::string& text) { return strdup(text.c_str()); }

uint64_t timestamp() { return uint64_t(epprof_now_ns()); }

void buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records) {
  Recording& c = recording();
  *buffer = c.buffers.get();
  *size = *buffer ? c.buffers.bytes() : 0;  // 0: CUPTI drops records and counts them
  *max_records = 0;
}

void buffer_completed(CUcontext context, uint32_t stream, uint8_t* buffer, size_t, size_t valid) {
  Recording& c = recording();
  {
    std::lock_guard<std::mutex> lock(c.mutex);
    c.completed_buffers++;
    int64_t start = epprof_now_ns();
    c.decoder.forget_names();
    void* record = nullptr;
    while (valid && cupti.ActivityGetNextRecord(buffer, valid, &record) == 0) {
      auto* bytes = static_cast<const unsigned char*>(record);
      uint32_t kind;
      memcpy(&kind, bytes, sizeof kind);
      c.decoder.decode(bytes, kind);
    }
    c.decode_ns += epprof_now_ns() - start;
    size_t dropped = 0;
    if (cupti.ActivityGetNumDroppedRecords(context, stream, &dropped) == 0) {
      c.dropped_records += dropped;
    }
  }
  if (buffer) c.buffers.put(buffer, valid);
}

// Whether CUPTI receives buffers of zeros. Otherwise it zeroes them itself, in the first launch of
// each thread, which takes milliseconds. Other profilers rely on that.
void promise_zeroed_buffers(bool zeroed) {
  uint8_t value = zeroed;
  size_t bytes = sizeof value;
  cupti.ActivitySetAttribute(kZeroedBuffers, &bytes, &value);
}

// The number of the recording, in the bits of an external id above the op id. Never 0.
uint64_t external_tag() {
  return (epoch.load(std::memory_order_relaxed) & ((uint64_t(1) << (63 - kOpBits)) - 1)) |
         uint64_t(1) << (63 - kOpBits);
}

void push_external(uint64_t op) {
  cupti.ActivityPushExternalCorrelationId(kExternalCustom2, external_tag() << kOpBits | op);
}

void pop_external() {
  uint64_t last;
  cupti.ActivityPopExternalCorrelationId(kExternalCustom2, &last);
}

}  // namespace
}  // namespace epprof

using namespace epprof;

extern "C" {

char* epprof_cupti_load(const char* path, const char* driver_path, uint32_t* version) {
  std::string failed = load_cupti(path, driver_path);
  if (!failed.empty()) return message(failed);
  *version = 0;
  CUptiResult result = cupti.GetVersion(version);
  if (result != 0 || *version == 0) {
    return message("cuptiGetVersion failed: " + cupti_error(result));
  }
  return nullptr;
}

char* epprof_cupti_set_layout(const void* layout, size_t bytes) {
  Recording& c = recording();
  std::lock_guard<std::mutex> lock(c.mutex);
  if (!c.layout.assign(layout, bytes)) {
    return message("The record layout has " + std::to_string(bytes) +
                   " bytes, the native core expects " + std::to_string(sizeof(RecordLayout)) +
                   ". The package's Python and native parts differ: reinstall epprof_nb.");
  }
  return nullptr;
}

void epprof_cupti_configure(size_t buffer_bytes, uint32_t buffers, uint64_t max_records) {
  Recording& c = recording();
  c.buffers.configure(buffer_bytes, buffers);
  c.waits.set_limit(max_records);
  std::lock_guard<std::mutex> lock(c.mutex);
  c.store.set_record_limit(max_records);
}

// Records of memory then name the library that allocated it.
static void enable_allocation_source(const Recording& c, uint32_t kind, uint8_t enable) {
  if (c.layout.type(kind) == RecordType::memory2 && cupti.ActivityEnableAllocationSource) {
    cupti.ActivityEnableAllocationSource(enable);
  }
}

char* epprof_cupti_start(const uint32_t* kinds, size_t count, int callbacks, int all_calls,
                     int external, uint32_t part, struct epprof_cupti_started* started) {
  Recording& c = recording();
  c.part = part;
  memset(started, 0, sizeof *started);
  // Register at each start, because another profiler may have replaced the callbacks.
  CUptiResult result = cupti.ActivityRegisterCallbacks(buffer_requested, buffer_completed);
  if (result != 0) {
    return message("cuptiActivityRegisterCallbacks failed: " + cupti_error(result));
  }
  c.cupti_started = true;
  promise_zeroed_buffers(true);
  if (!c.clock_registered) {
    // Register once per process, because registering again corrupts the first records of the next
    // session.
    started->clock_result = cupti.ActivityRegisterTimestampCallback(timestamp);
    c.clock_registered = started->clock_result == 0;
  }
  c.stream_captures = 0;
  call_session++;
  c.launch_calls_before = 0;
  c.store.reset_own_launch_count();
  c.waits.clear();
  c.launch_calls_before = epprof_cupti_pending_records();
  {
    std::lock_guard<std::mutex> lock(c.contexts_mutex);
    c.contexts.clear();
  }
  prepare_first_launch();
  if (callbacks) {
    started->subscribe_result = subscribe(c, all_calls != 0);
    started->subscribed = started->subscribe_result == 0;
  }
  for (size_t i = 0; i < count; i++) {
    if (cupti.ActivityEnable(kinds[i]) == 0) {
      c.kinds.push_back(kinds[i]);
      enable_allocation_source(c, kinds[i], 1);
    } else {
      started->failed_kinds++;
    }
  }
  CUcontext current = nullptr;
  if (external && cupti.CtxGetCurrent(&current) == 0 && current) {
    // Without callbacks, the contexts in use are unknown. Synchronize at least this one.
    std::lock_guard<std::mutex> lock(c.contexts_mutex);
    c.contexts.push_back(current);
  }
  if (external) {
    cupti.SetThreadIdType(kSystemThreadIds);  // API records then carry gettid's ids
    if (!all_calls) select_api_records(false);
    {
      std::lock_guard<std::mutex> lock(c.mutex);
      c.decoder.set_external_tag(external_tag());
    }
    c.external = true;
    mirror_ids(push_external, pop_external);
  }
  c.running = true;
  return nullptr;
}

int epprof_cupti_has_callbacks(void) {
  return recording().subscriber && recording_launches.load(std::memory_order_relaxed);
}

void epprof_cupti_stop(void) {
  Recording& c = recording();
  if (c.external) {
    cupti.SetThreadIdType(kDefaultThreadIds);
    select_api_records(true);  // other profilers record all
  }
  c.external = false;
  mirror_ids(nullptr, nullptr);
  // Keep this order. While another thread launched, CUPTI 13.0 crashed in its launches or
  // deadlocked in cuptiActivityEnable in 1 of 17 processes with hundreds of sessions each. With the
  // callbacks' domains disabled first and the records flushed before, it did so in 4 of 14.
  for (uint32_t kind : c.kinds) {
    enable_allocation_source(c, kind, 0);
    cupti.ActivityDisable(kind);
  }
  c.kinds.clear();
  // A subscription between sessions blocks other profilers' records, so only experiments have one.
  unsubscribe(c);
  cupti.ActivityFlushAll(1);
  promise_zeroed_buffers(false);
  c.buffers.trim();
  trim_column_blocks();
  c.running = false;
}

void epprof_cupti_follow_streams(int follow) {
  Recording& c = recording();
  c.follows_streams = follow != 0;
  if (!follow && !c.running) stop_following_streams(c);
}

int epprof_cupti_follows_streams(void) {
  Recording& c = recording();
  return c.follows_streams && c.subscriber;
}

void epprof_cupti_finalize(void) {
  Recording& c = recording();
  if (c.running || !c.cupti_started) return;
  stop_following_streams(c);
  cupti.Finalize();
  c.cupti_started = false;
  c.clock_registered = false;
}

size_t epprof_cupti_sync(uint64_t (*failed)[2], size_t room) {
  Recording& c = recording();
  if (c.stream_captures > 0) return 0;  // synchronizing would invalidate the capture
  ThreadState* t = this_thread();
  std::vector<CUcontext> contexts;
  {
    std::lock_guard<std::mutex> lock(c.contexts_mutex);
    contexts = c.contexts;
  }
  size_t failures = 0;
  if (t) t->in_profiler = true;
  for (CUcontext context : contexts) {
    int result = cupti.CtxPushCurrent(context);
    if (result == 0) {
      result = cupti.CtxSynchronize();
      CUcontext popped;
      cupti.CtxPopCurrent(&popped);
    }
    if (result != 0 && failures < room) {
      failed[failures][0] = reinterpret_cast<uintptr_t>(context);
      failed[failures][1] = uint64_t(result);
      failures++;
    }
  }
  if (t) t->in_profiler = false;
  return failures;
}

void epprof_cuda_error(int result, const char** name, const char** text) {
  if (cupti.GetErrorName(result, name) != 0 || !*name) *name = "";
  if (cupti.GetErrorString(result, text) != 0 || !*text) *text = "";
}

int64_t epprof_cupti_pending_records(void) {
  Recording& c = recording();
  int64_t calls = 0;
  for_each_thread(
      [](ThreadState* t, void* sum) {
        *static_cast<int64_t*>(sum) += int64_t(t->launch_calls.load(std::memory_order_relaxed));
      },
      &calls);
  std::lock_guard<std::mutex> lock(c.mutex);
  return calls + ended_launch_calls() - c.launch_calls_before - c.store.own_launch_count();
}

int epprof_cupti_first_launch(void) { return make_first_launch(); }

uint32_t epprof_cupti_flush(int forced) { return cupti.ActivityFlushAll(forced ? 1 : 0); }

int epprof_cuda_started(void) {
  CUcontext current;
  return cupti.CtxGetCurrent(&current) == 0;
}

int epprof_cupti_read_clock(int64_t out[3]) {
  constexpr int kTries = 5;
  int64_t tightest = INT64_MAX;
  for (int i = 0; i < kTries; i++) {
    uint64_t theirs = 0;
    int64_t before = epprof_now_ns();
    if (cupti.GetTimestamp(&theirs) != 0) return 0;
    int64_t after = epprof_now_ns();
    if (after - before >= tightest) continue;
    tightest = after - before;
    out[0] = before;
    out[1] = int64_t(theirs);
    out[2] = after;
  }
  return 1;
}

epprof_columns* epprof_cupti_drain(uint64_t counts[5]) {
  Recording& c = recording();
  auto* columns = new Columns;
  std::lock_guard<std::mutex> lock(c.mutex);
  c.waits.move_to(c.store);
  c.store.move_to_columns(columns, counts);
  counts[3] = c.dropped_records;
  counts[4] = uint64_t(c.decode_ns);
  c.dropped_records = 0;
  c.decode_ns = 0;
  return columns;
}

epprof_columns* epprof_cupti_graph_nodes(void) { return take_graph_nodes(); }

void epprof_cupti_state(uint64_t out[6]) {
  Recording& c = recording();
  out[0] = c.running;
  out[1] = c.buffers.out();
  out[2] = c.buffers.bytes();
  out[3] = c.completed_buffers;
  out[4] = uint64_t(c.stream_captures.load());
  std::lock_guard<std::mutex> lock(c.contexts_mutex);
  out[5] = c.contexts.size();
}

const char* epprof_cupti_callback_name(uint32_t domain, uint32_t cbid) {
  const char* name = nullptr;
  if (!cupti.GetCallbackName || cupti.GetCallbackName(domain, cbid, &name) != 0) return nullptr;
  return name;
}

epprof_columns* epprof_decode(const void* raw, size_t bytes, const void* layout, size_t layout_bytes,
                      uint64_t counts[5]) {
  RecordLayout l;
  if (!l.assign(layout, layout_bytes)) return nullptr;
  ActivityStore store;
  int64_t start = epprof_now_ns();
  counts[3] = decode_buffer(static_cast<const unsigned char*>(raw), bytes, l, store);
  counts[4] = uint64_t(epprof_now_ns() - start);
  auto* columns = new Columns;
  store.move_to_columns(columns, counts);
  return columns;
}

}  // extern "C"
