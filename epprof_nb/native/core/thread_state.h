// State of each thread that has opened an op or launched work: its op stack, its logs and its open
// API call.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/cell_thread_wait.h"
#include "core/clock.h"
#include "core/coalesced_statements.h"
#include "core/gc_pauses.h"
#include "core/open_calls.h"
#include "core/records.h"
#include "core/spsc_log.h"
#include "core/statement_limits.h"

namespace epprof {

enum class EntryKind : uint8_t { op, statement, scope };

// The statement's row belongs to another thread, because a generator resumed on this thread. The
// records are joined by op id later.
constexpr uint32_t kOtherThreadRow = UINT32_MAX;

// An entry of an op stack.
struct Entry {
  uint64_t op_id;  // 0 for a scope and for a lost statement
  uint64_t parent;
  int64_t start;
  int64_t suspended;     // total so far; as in OpRecord
  int64_t suspended_at;  // start of the current suspension
  const void* owner;     // identifies the object that opened the op and will end it
  uint64_t key;          // the owner's id of the op
  uint64_t frame;        // its generator or coroutine frame; 0: none
  uint32_t name;
  uint32_t payload_id;     // as in OpRecord; statement key of a scope, tag of an open event
  uint32_t statement_row;  // CoalescedStatement index + 1; 0: not coalesced; or kOtherThreadRow
  uint16_t category;
  EntryKind kind;
  bool lost : 1;  // an op without a row: deeper than kMaxDepth, counted as lost
  bool recurs : 1;  // in a call of a function inside another call of it

  bool has_row() const { return op_id && !lost; }
  int64_t duration_until(int64_t now) const {
    return now - start - (is_operator(category) ? 0 : suspended);
  }
  void resume(int64_t now) {
    if (!is_operator(category)) suspended += now - suspended_at;
  }
};

// The stack of a greenlet while its thread runs another greenlet.
struct WaitingStack {
  std::vector<Entry> entries;
  uint32_t untracked = 0;
  int64_t last_event_end = 0;
};

// Ops deeper than kMaxDepth have entries for their ends, but no rows. Beyond kMaxEntries, only
// their number is kept.
constexpr uint32_t kMaxDepth = 8192;
constexpr uint32_t kMaxEntries = 1 << 20;

constexpr size_t kThreadName = 16;  // as in prctl(2), with the terminating zero

// What another folder keeps of a thread, until the thread's state is freed.
struct ThreadExtra {
  virtual ~ThreadExtra() = default;
};

// The thread makes it on first use, while a drain of another thread may look for it.
class ExtraSlot {
 public:
  ~ExtraSlot() { delete extra_.load(); }
  ThreadExtra* get() const { return extra_.load(std::memory_order_acquire); }

  template <typename Extra>
  Extra& made() {
    ThreadExtra* extra = extra_.load(std::memory_order_relaxed);
    if (!extra) extra_.store(extra = new Extra, std::memory_order_release);
    return *static_cast<Extra*>(extra);
  }

 private:
  std::atomic<ThreadExtra*> extra_{nullptr};
};

// Recursion calls short functions most often, and each call has statements with rows of their own.
// So these are recorded only for a share of the time: about 0.4 us for each of them.
struct RecursionBudget {
  int64_t filled_at = 0;
  int64_t left = 0;
  uint64_t unmarked = 0;  // statements that were not recorded

  bool take() {
    // Reading the clock takes longer than all the rest.
    if (left == 0 && unmarked++ % 16 == 0) {
      int64_t now = epprof_now_ns();
      left = std::min<int64_t>((now - filled_at) / kNsPerRecursiveStatement, kRecursiveStatements);
      if (left) filled_at = now, unmarked--;
    }
    if (left == 0) return false;
    left--;
    return true;
  }
};

struct ThreadState {
  uint64_t tid = 0;
  std::atomic<bool> ended{false};
  std::atomic<bool> is_own{false};  // the profiler has started the thread
  char name[kThreadName] = "";  // the system's name of the thread, known once it has ended
  bool logs_flushed = false;  // the ops were drained after the thread ended

  // The op stack. Other threads read it only under `stack_lock`.
  std::atomic<bool> stack_lock{false};
  std::atomic<uint64_t> epoch{0};  // the stack's recording; readable without the lock
  Entry* stack = nullptr;
  uint32_t depth = 0;
  uint32_t capacity = kMaxDepth;          // of `stack`
  uint32_t untracked = 0;                 // open ops without entries
  int64_t last_event_end = 0;             // of another profiler's event that ended last
  // Id of the topmost op that has a row, otherwise `waiting_op`.
  std::atomic<uint64_t> top_op{0};
  std::atomic<uint64_t> stack_changes{0};
  uint64_t next_id = 0;  // op ids of this thread: the block [next_id, last_id)
  uint64_t last_id = 0;
  uint32_t statement_rows = 0;  // statements recorded with rows of their own
  RecursionBudget recursion;
  CoalescedStatements coalesced;
  ShortPauses short_pauses;

  // For greenlets.cpp, by the addresses of greenlets. They change with the stack, under its lock.
  std::atomic<uint64_t> greenlet{0};       // whose ops the stack holds; 0: none seen yet
  std::atomic<uint64_t> cell_greenlet{0};  // runs the cell; 0: on another thread, or none seen
  std::atomic<uint64_t> waiting_op{0};     // on top in `cell_greenlet` while another one runs
  std::unordered_map<uint64_t, WaitingStack> waiting;

  SpscLog<OpRecord> ops;
  SpscLog<LaunchRecord> launches;
  SpscLog<NodeUsageRecord> node_usage;  // in `op_pool`
  SpscLog<OpStackRecord> op_stacks;     // in `op_pool`

  OpenCalls open_calls;
  bool node_created = false;              // a graph node was created inside the innermost call
  std::atomic<bool> in_profiler{false};   // the profiler itself is calling CUDA
  std::atomic<bool> in_callback{false};   // of CUPTI

  // When it last entered or left a recorded API call.
  std::atomic<int64_t> last_call{0};
  // Number of calls so far that each put one activity on the device.
  std::atomic<uint64_t> launch_calls{0};
  // Hashes of these calls in order, with and without sizes, since a reader set them to 0; see
  // launch_signature.h.
  uint64_t launch_hash = 0;
  uint64_t function_hash = 0;

  std::atomic<bool> reads_cell_thread{false};  // keeps the state of the cell's thread
  CellThreadWait cell_wait;                    // observed at this thread's launches

  // The ids that a recorder mirrors, for external_ids.cpp: their mirror, their number, and whether
  // the stack has changed without them.
  uint64_t ids_mirror = 0;
  uint32_t ids = 0;
  bool ids_are_stale = false;

  // For stacks/: the Python stacks that the thread has seen, and whether it is reading one.
  ExtraSlot stacks;
  std::atomic<bool> walks{false};
  ExtraSlot autograd;  // for torch/: nodes at the launches of the thread

  // The last CUDA context on this thread, and its CUPTI session.
  void* context = nullptr;
  uint64_t context_session = 0;
};

// Spin lock held while a thread's stack changes. Only a drain contends for it.
class StackLockGuard {
 public:
  explicit StackLockGuard(ThreadState* t) : locked_(t->stack_lock) {
    while (locked_.exchange(true, std::memory_order_acquire)) {
    }
    t->stack_changes.store(t->stack_changes.load(std::memory_order_relaxed) + 1,
                           std::memory_order_relaxed);
  }
  ~StackLockGuard() { locked_.store(false, std::memory_order_release); }
  StackLockGuard(const StackLockGuard&) = delete;
  StackLockGuard& operator=(const StackLockGuard&) = delete;

 private:
  std::atomic<bool>& locked_;
};

// Reads the Python stack of the calling thread; null while stacks are not recorded.
extern std::atomic<uint32_t (*)(ThreadState*)> read_stack;

// The calling thread's state, created on first use. Null once its thread locals are destroyed.
ThreadState* this_thread();

// The state of the process's first thread, created on first use.
ThreadState* first_thread();

// Calls `each(thread, data)` for every thread, under the registry's lock.
void for_each_thread(void (*each)(ThreadState*, void*), void* data);
int64_t ended_launch_calls();  // launch calls of the threads freed so far
void free_ended_threads();     // frees ended threads whose logs have been drained

// CPU time of a thread of this process so far; -1 if it has ended.
int64_t thread_cpu_time(uint64_t tid);
// Time that a thread of this process has waited for a core so far, until it last got one; -1 if it
// is unknown.
int64_t thread_core_wait(uint64_t tid);

// The thread that runs the cell. Launches on threads without open ops may belong to its op.
extern std::atomic<ThreadState*> cell_thread;

extern ChunkPool op_pool;
extern ChunkPool launch_pool;
extern std::atomic<uint64_t> epoch;  // incremented when recording starts; stale stacks reset

struct Limits {
  uint32_t statement_rows;     // rows per thread before every statement is coalesced
  uint32_t statement_repeats;  // rows per statement and parent before it is coalesced
};
extern Limits limits;

}  // namespace epprof
