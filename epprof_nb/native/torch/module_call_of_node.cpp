#include "torch/module_call_of_node.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "core/fork.h"
#include "torch/engine.h"

namespace epprof::torch {
namespace {

constexpr uint64_t kRing = uint64_t(1) << 19;  // records per thread, for thousands of steps
constexpr uint64_t kNear = 8;  // changes before the last one found, searched first
constexpr int kIndexBits = 40;
constexpr size_t kThreads = 4096;

// The last `kRing` records of a thread, which other threads read while it adds more. Memory is
// mapped on use.
template <typename Record>
class Ring {
 public:
  Ring()
      : records_(static_cast<Record*>(mmap(nullptr, kRing * sizeof(Record), PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    if (static_cast<void*>(records_) == MAP_FAILED) records_ = nullptr;
  }
  bool is_mapped() const { return records_ != nullptr; }
  uint64_t end() const { return end_.load(std::memory_order_acquire); }
  uint64_t first() const { return first_before(end()); }
  // A record is valid if `keeps` is true for its index after the read.
  Record& operator[](uint64_t index) const { return records_[index & (kRing - 1)]; }
  bool keeps(uint64_t index) const {
    std::atomic_thread_fence(std::memory_order_acquire);
    return index >= first_before(end_.load(std::memory_order_relaxed));
  }
  Record& next() const { return (*this)[end_.load(std::memory_order_relaxed)]; }
  void publish() {  // only its thread adds records
    end_.store(end_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  void clear() {
    end_ = 0;
    if (records_) madvise(records_, kRing * sizeof(Record), MADV_DONTNEED);
  }

 private:
  // The record after the last one may be incomplete, in the place of the oldest record.
  static uint64_t first_before(uint64_t end) { return end < kRing ? 0 : end - kRing + 1; }

  Record* records_;
  std::atomic<uint64_t> end_{0};
};

// From the node with this number on, the innermost call is `call`.
struct Change {
  std::atomic<uint64_t> number, call;
};

struct Call {
  std::atomic<uint64_t> outer;
  std::atomic<uint32_t> name, kind;
};

struct ModuleLog {
  uint64_t slot = 0;  // of this log, in call ids
  std::atomic<uint64_t> thread{0};  // PyTorch's number
  std::atomic<uint64_t> first{0};   // number of the first node that can be linked
  bool only_in_passes = true;   // for example calls on autograd's threads
  CallId current = kNoCall;
  Ring<Change> changes;
  Ring<Call> calls;
};

std::vector<ModuleLog*>& logs = *new std::vector<ModuleLog*>;  // the index is the slot
size_t used_logs = 0;
std::atomic<ModuleLog*> by_slot[kThreads];
std::atomic<ModuleLog*> by_thread[kThreads];
uint64_t recording = 0;  // changes with each start and stop
thread_local uint64_t own_recording = 0;
thread_local ModuleLog* own_log = nullptr;

void forget() {
  recording++;
  for (auto& log : by_thread) log.store(nullptr, std::memory_order_relaxed);
  for (size_t i = 0; i < used_logs; i++) {
    logs[i]->changes.clear();
    logs[i]->calls.clear();
  }
  used_logs = 0;
}

ModuleLog* new_log() {
  if (used_logs < logs.size()) return logs[used_logs++];
  if (logs.size() == kThreads) return nullptr;
  auto* log = new ModuleLog;
  if (!log->changes.is_mapped() || !log->calls.is_mapped()) return nullptr;
  log->slot = logs.size();
  logs.push_back(log);
  by_slot[log->slot].store(log, std::memory_order_release);
  used_logs++;
  return log;
}

ModuleLog* log_of_thread(uint64_t number) {
  if (own_recording == recording) return own_log;
  own_recording = recording;
  own_log = new_log();
  if (!own_log) return nullptr;
  own_log->thread = thread_number();
  own_log->first = number;
  own_log->only_in_passes = true;
  own_log->current = kNoCall;
  by_thread[own_log->thread % kThreads].store(own_log, std::memory_order_release);
  return own_log;
}

void change(ModuleLog* log, uint64_t number, CallId call) {
  log->current = call;
  uint64_t end = log->changes.end();
  if (end) {
    Change& last = log->changes[end - 1];
    // No node has been created since the last change.
    if (last.number.load(std::memory_order_relaxed) == number) {
      last.call.store(call, std::memory_order_relaxed);
      return;
    }
  }
  Change& added = log->changes.next();
  added.number.store(number, std::memory_order_relaxed);
  added.call.store(call, std::memory_order_relaxed);
  log->changes.publish();
}

// The call at a number. `hint` is the index after the change found last; `lowest` becomes the number
// of the change.
CallId find(const ModuleLog* log, uint64_t number, uint64_t* hint, uint64_t* lowest) {
  if (number < log->first) return kUnknownCall;
  const Ring<Change>& changes = log->changes;
  auto number_at = [&](uint64_t i) { return changes[i].number.load(std::memory_order_relaxed); };
  uint64_t first = changes.first(), low = first, high = changes.end();
  if (*hint > low && *hint <= high) {
    if (*hint < high && number_at(*hint) > number) high = *hint;
    if (*hint >= low + kNear && number_at(*hint - kNear) <= number) low = *hint - kNear;
  }
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (number_at(middle) > number) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  *hint = low;
  if (low == first) {  // before the first kept change
    *lowest = log->first;
    return first ? kUnknownCall : kNoCall;
  }
  CallId call = changes[low - 1].call.load(std::memory_order_relaxed);
  *lowest = number_at(low - 1);
  return changes.keeps(low - 1) ? call : kUnknownCall;
}

// The record of a call; null if it is no longer kept. `index`: to check again after reading it.
const Call* record_of(CallId call, const ModuleLog** log, uint64_t* index) {
  if (call == kNoCall || call == kUnknownCall) return nullptr;
  *log = by_slot[(call >> kIndexBits) % kThreads].load(std::memory_order_acquire);
  *index = (call & ((uint64_t(1) << kIndexBits) - 1)) - 1;
  return *log ? &(*log)->calls[*index] : nullptr;
}

// Whether another thread called modules under this number.
bool is_shared(const ModuleLog* own, uint64_t number) {
  if (own->only_in_passes && own->changes.end()) return false;
  for (size_t i = 0; i < used_logs; i++) {
    const ModuleLog* other = logs[i];
    uint64_t end = other->changes.end();
    if (other == own || other->only_in_passes || !end) continue;
    uint64_t begins = other->changes[other->changes.first()].number.load();
    if (begins <= number && number < other->changes[end - 1].number.load()) return true;
  }
  return false;
}

ResetInChild reset_calls([] {
  forget();
  own_recording = 0;
});

}  // namespace

void start_module_logs() { forget(); }
void stop_module_logs() { forget(); }
void begin_module_log(uint64_t number) { log_of_thread(number); }

CallId begin_call(CallOp op, uint64_t number, bool in_pass) {
  ModuleLog* log = log_of_thread(number);
  if (!log) return kNoCall;
  CallId outer = log->current;
  if (!in_pass) log->only_in_passes = false;
  Call& added = log->calls.next();
  added.outer.store(outer, std::memory_order_relaxed);
  added.name.store(op.name, std::memory_order_relaxed);
  added.kind.store(op.kind, std::memory_order_relaxed);
  log->calls.publish();
  change(log, number, log->slot << kIndexBits | log->calls.end());
  return outer;
}

void end_call(CallId outer, uint64_t number) {
  // If the recording began during the call, the calls around it are unknown.
  if (own_recording == recording && own_log && own_log->current != kNoCall) {
    change(own_log, number, outer);
  }
}

CallId call_of_node(uint64_t thread, uint64_t number) {
  thread_local uint64_t hint = 0;
  const ModuleLog* log = by_thread[thread % kThreads].load(std::memory_order_acquire);
  uint64_t lowest;
  return log && log->thread == thread ? find(log, number, &hint, &lowest) : kUnknownCall;
}

CallId outer_call(CallId call) {
  const ModuleLog* log;
  uint64_t index;
  const Call* record = record_of(call, &log, &index);
  if (!record) return kNoCall;
  CallId outer = record->outer.load(std::memory_order_relaxed);
  return log->calls.keeps(index) ? outer : kNoCall;
}

bool op_of_call(CallId call, CallOp* op) {
  const ModuleLog* log;
  uint64_t index;
  const Call* record = record_of(call, &log, &index);
  if (!record) return false;
  *op = {record->name.load(std::memory_order_relaxed), record->kind.load(std::memory_order_relaxed)};
  return log->calls.keeps(index);
}

CallId call_of_own_node(uint64_t number, uint64_t* lowest) {
  *lowest = number;
  if (own_recording != recording || !own_log) return kUnknownCall;
  if (is_shared(own_log, number)) return kUnknownCall;
  thread_local uint64_t hint = 0;
  CallId call = find(own_log, number, &hint, lowest);
  // Another thread's numbers may begin in between.
  if (used_logs > 1) *lowest = number;
  return call;
}

}  // namespace epprof::torch
