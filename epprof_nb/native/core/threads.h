// What each thread keeps for the profiler: its op stack, its logs, the call it is in.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/spsc_log.h"
#include "core/statements.h"

namespace epprof {

// An op that has ended, as the drain hands it over.
struct OpRecord {
  uint64_t op_id;
  uint64_t parent;
  int64_t start;
  int64_t end;
  int64_t duration;  // time open and not suspended
  int64_t suspended;
  uint32_t name;
  uint32_t meta;  // statement key or args id
  uint32_t count;
  uint16_t category;
  uint16_t flags;
};
static_assert(sizeof(OpRecord) == 64, "one cache line an op");

enum OpFlags : uint16_t { kOpOpen = 1, kOpCoalesced = 2 };
enum Category : uint16_t {
  kRange = 0,
  kStatement = 1,
  kCell = 2,
  kOrtEvent = 3,  // of ONNX Runtime: of a session, ...
  kOrtRun = 4,    // ... a run, ...
  kOrtNode = 5,   // ... or a node
};

// An API call that launched, copied, set or waited.
struct LaunchRecord {
  uint64_t correlation;
  uint64_t op;  // kNoOp | the cell thread's top op, where none was open on this thread
  int64_t start;
  int64_t end;
  uint32_t name;
  int32_t result;
  uint16_t flags;
  uint16_t domain;
};
constexpr uint64_t kNoOp = uint64_t(1) << 63;
enum LaunchFlags : uint16_t {
  kCaptured = 1,
  kOurOwn = 2,
  kStillInCall = 4,
  kCellWaited = 8,  // since this thread's last launch the cell's thread used no CPU time ...
  kCellRan = 16,    // ... or did
};
enum Domain : uint16_t { kDriver = 0, kRuntime = 1, kHost = 2 };

enum class EntryKind : uint16_t { op, statement, scope };

// The row belongs to another thread (a generator went on elsewhere): joined by op id later.
constexpr uint32_t kForeignRow = UINT32_MAX;

struct Entry {
  uint64_t op_id;  // 0 for a scope
  uint64_t parent;
  int64_t start;
  int64_t suspended;     // total so far
  int64_t suspended_at;  // while suspended: since when
  const void* owner;     // who opened it (an op object), to find it at its end
  uint64_t frame;        // generator or coroutine frame it belongs to; 0: none
  uint32_t name;
  uint32_t meta;
  uint32_t row;  // coalesced statement row + 1; 0: a row of its own; kForeignRow
  uint16_t category;
  EntryKind kind;
};

// Executions of one statement under one parent that share a row.
struct LineRow {
  uint64_t parent;
  uint64_t op_id;  // 0 until executions are coalesced
  int64_t first_start;
  int64_t last_end;
  int64_t duration;
  int64_t suspended;
  uint32_t key;
  uint32_t seen;  // executions with rows of their own
  uint32_t count;  // coalesced executions since the last drain
};

// (parent op, statement) -> LineRow. Open addressing; grows by doubling.
class LineRows {
 public:
  // Index into `rows`, made where missing.
  uint32_t find(uint64_t parent, uint32_t key) {
    uint32_t& recent = recent_[key % kRecent];
    if (recent < rows.size() && rows[recent].key == key && rows[recent].parent == parent) {
      return recent;
    }
    return recent = search(parent, key);
  }
  void clear();
  std::vector<LineRow> rows;

 private:
  static constexpr size_t kRecent = 64;

  uint32_t search(uint64_t parent, uint32_t key);
  void rehash(size_t slots);
  std::vector<uint32_t> slots_;  // index + 1
  uint32_t recent_[kRecent] = {};  // rows found last: a loop's statements come again and again
};

constexpr uint32_t kMaxDepth = 8192;

struct ThreadState {
  uint64_t tid = 0;
  uint64_t epoch = 0;
  std::atomic<bool> guard{false};  // held for each change of the stack; the drain takes it too
  std::atomic<bool> ended{false};
  bool ended_drained = false;  // its ops were drained after it ended
  uint32_t depth = 0;
  uint32_t overflow = 0;  // ops not stacked because the stack was full
  std::atomic<uint64_t> top_op{0};    // id of the topmost op, scopes skipped
  std::atomic<uint64_t> moves{0};     // changes of the stack so far
  uint64_t cell_moves = 0;            // of the cell's thread at this thread's last launch ...
  int64_t cell_cpu = 0, cell_wall = 0;  // ... with its CPU time and the time then
  uint64_t next_id = 0;
  uint64_t last_id = 0;
  uint32_t statement_rows = 0;
  bool node_created = false;  // a graph node was made inside the current API call
  std::atomic<uint64_t> work_calls{0};  // calls that put one activity on the device, ever
  bool internal = false;      // the profiler itself is calling CUDA
  void* context = nullptr;    // last CUDA context seen on this thread ...
  uint64_t context_session = 0;  // ... in this CUPTI session
  Entry* stack = nullptr;
  LineRows lines;
  SpscLog<OpRecord> ops;
  SpscLog<LaunchRecord> launches;
  // The API call in progress, for a drain that comes while the thread is inside it.
  std::atomic<uint64_t> call_correlation{0};
  uint64_t call_op = 0;
  uint16_t call_flags = 0;
  int64_t call_start = 0;
  uint32_t call_name = 0;
};

// Held while a thread's stack changes. Contended only by a drain.
class Guard {
 public:
  explicit Guard(ThreadState* t) : flag_(t->guard) {
    while (flag_.exchange(true, std::memory_order_acquire)) {
    }
    t->moves.store(t->moves.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  ~Guard() { flag_.store(false, std::memory_order_release); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  std::atomic<bool>& flag_;
};

ThreadState* this_thread();  // made on first use; null once this thread's locals are gone

// Calls `each(thread, data)` for every thread, under the registry's lock.
void for_each_thread(void (*each)(ThreadState*, void*), void* data);
int64_t ended_work_calls();  // work calls of threads freed since
void reap_threads();  // frees threads that have ended and whose logs have all been taken
void forget_threads_after_fork();

// The thread whose op a launch from a thread without ops may belong to; null: none.
extern std::atomic<ThreadState*> cell_thread;

extern ChunkPool op_pool;
extern ChunkPool launch_pool;
extern std::atomic<uint64_t> epoch;  // one more each time recording goes on: stale stacks reset

struct Limits {
  uint32_t line_rows = 100000;   // statement rows a thread before all are coalesced
  uint32_t line_repeats = 1000;  // rows of one statement under one parent before it is
};
extern Limits limits;

}  // namespace epprof
