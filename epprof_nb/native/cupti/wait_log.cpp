#include "cupti/wait_log.h"

#include <string.h>

namespace epprof {
namespace {

constexpr int32_t kNoStream = -1;

void* pointer_at(const void* params, size_t at) {
  void* pointer = nullptr;
  if (params) memcpy(&pointer, static_cast<const unsigned char*>(params) + at, sizeof pointer);
  return pointer;
}

int32_t context_id(CUcontext context) {
  uint32_t id = 0;
  return context && cupti.GetContextId(context, &id) == 0 ? int32_t(id) : -1;
}

// CU_STREAM_PER_THREAD. Handles up to it stand for the default streams of the current context.
CUstream const kPerThreadStream = reinterpret_cast<CUstream>(2);

bool is_captured(CUstream stream, bool is_per_thread) {
  if (!stream && is_per_thread) stream = kPerThreadStream;
  uint32_t status = 0;
  return cupti.StreamIsCapturing(stream, &status) == 0 && status != 0;
}

// A call may be on a stream of another context than the current one.
CUcontext context_of(CUstream stream, CUcontext current) {
  CUcontext context = nullptr;
  if (uintptr_t(stream) <= uintptr_t(kPerThreadStream)) return current;
  return cupti.StreamGetCtx(stream, &context) == 0 && context ? context : current;
}

int32_t stream_id(CUcontext context, CUstream stream, bool is_per_thread) {
  uint32_t id = 0;
  return cupti.GetStreamIdEx(context, stream, is_per_thread, &id) == 0 ? int32_t(id) : kNoStream;
}

// CUpti_ActivitySynchronizationType.
uint8_t sync_type(StreamCall call) {
  switch (call) {
    case StreamCall::event_synchronize: return 1;
    case StreamCall::stream_wait_event: return 2;
    case StreamCall::stream_synchronize: return 3;
    case StreamCall::context_synchronize: return 4;
    default: return 0;
  }
}

}  // namespace

void WaitLog::set_limit(uint64_t rows) {
  std::lock_guard<std::mutex> lock(mutex_);
  limit_ = rows;
}

void WaitLog::clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  records_.clear();
  waits_.clear();
  lost_ = 0;
}

bool WaitLog::has_capacity() {
  bool has = records_.size() + waits_.size() < limit_;
  lost_ += !has;
  return has;
}

WaitLog::Event& WaitLog::event(void* handle) {
  Event& found = events_[handle];
  if (!found.id) found.id = ++event_count_;
  return found;
}

void WaitLog::add(const DriverCall& call, CUcontext context, const void* params,
                  uint32_t correlation, const CallInterval& interval, bool some_are_captured) {
  void* handle = call.event_at < 0 ? nullptr : pointer_at(params, size_t(call.event_at));
  if (call.event_at >= 0 && !handle) return;
  if (call.of_stream == StreamCall::event_destroy) {
    std::lock_guard<std::mutex> lock(mutex_);
    events_.erase(handle);
    return;
  }
  int32_t stream = kNoStream;
  if (call.wait_stream_at >= 0) {
    CUstream of_call = pointer_at(params, size_t(call.wait_stream_at));
    if (some_are_captured && is_captured(of_call, call.is_per_thread)) return;
    context = context_of(of_call, context);
    stream = stream_id(context, of_call, call.is_per_thread);
  }
  int32_t in_context = context_id(context);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!has_capacity()) return;
  if (call.of_stream == StreamCall::event_record) {
    Event& recorded = event(handle);
    recorded.last_record = ++record_count_;
    recorded.context = in_context;
    records_.push_back({recorded.last_record, correlation, recorded.id, in_context, stream});
    return;
  }
  Event awaited = handle ? event(handle) : Event{};
  if (call.of_stream == StreamCall::event_synchronize && awaited.last_record) {
    in_context = awaited.context;  // any thread may wait, whatever its current context
  }
  waits_.push_back({interval, awaited.last_record, correlation, awaited.id, in_context, stream,
                    call.of_stream});
}

void WaitLog::move_to(ActivityStore& store) {
  std::vector<EventRecord> records;
  std::vector<Wait> waits;
  uint64_t lost = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    records.swap(records_);
    waits.swap(waits_);
    std::swap(lost, lost_);
  }
  store.count_lost(lost);
  for (const EventRecord& record : records) store.add(record);
  for (const Wait& wait : waits) {
    size_t row;
    ColumnBlock* block = store.append_row(&row);
    if (!block) continue;
    block->kind[row] = kSynchronization;
    block->start[row] = wait.interval.start;
    block->end[row] = wait.interval.end;
    block->correlation[row] = wait.correlation;
    block->context[row] = wait.context;
    block->stream[row] = wait.stream;
    block->sync_type[row] = sync_type(wait.call);
    if (wait.event) store.add_awaited_event(wait.event_record, wait.event);
    store.commit_row(false);
  }
}

}  // namespace epprof
