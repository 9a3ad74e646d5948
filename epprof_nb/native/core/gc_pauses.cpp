#include "core/gc_pauses.h"

#include "core/api.h"
#include "core/clock.h"
#include "core/stack_entries.h"

namespace epprof {
namespace {

constexpr int64_t kShortNs = 500000;
constexpr int64_t kApartNs = 10000000;

void log(ThreadState* t, const OpRecord& row) {
  if (OpRecord* record = t->ops.begin(op_pool)) {
    *record = row;
    t->ops.commit();
  }
}

// A row over pauses that are far apart would look like one pause of that length.
bool continues(const OpRecord& row, const OpRecord& pause) {
  return row.op_id && row.parent == pause.parent && row.payload_id == pause.payload_id &&
         pause.start - row.end < kApartNs;
}

void add_short(ThreadState* t, const OpRecord& pause) {
  OpRecord& row = t->short_pauses.row;
  if (continues(row, pause)) {
    if (!row.count) row.start = pause.start;
    row.end = pause.end;
    row.duration += pause.duration;
    row.count++;
    return;
  }
  if (row.count) log(t, row);
  row = pause;
  row.op_id = new_op_id(t);
  row.flags = kOpCoalesced;
}

}  // namespace

void log_gc_pause(uint32_t name, uint32_t kind, int64_t start, bool is_young) {
  ThreadState* t = stack_thread();
  if (!t || t->is_own.load(std::memory_order_relaxed)) return;
  StackLockGuard stack_lock(t);
  int64_t now = epprof_now_ns();
  OpRecord pause{0, t->top_op, start, now, now - start, 0, name, kind, 1, kGarbageCollection, 0};
  if (is_young && pause.duration < kShortNs) {
    add_short(t, pause);
    return;
  }
  pause.op_id = new_op_id(t);
  note_stack(t, pause.op_id);
  log(t, pause);
}

}  // namespace epprof

extern "C" void epprof_gc_pause(uint32_t name, uint32_t kind, int64_t start, int is_young) {
  epprof::log_gc_pause(name, kind, start, is_young != 0);
}
