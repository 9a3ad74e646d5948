// The drain: converts the threads' logs to columns.
#include "core/api.h"

#include <algorithm>
#include <utility>

#include "core/greenlets.h"
#include "core/launch_log.h"
#include "core/statements.h"
#include "core/string_table.h"
#include "core/suspended_ops.h"

namespace epprof {
namespace {

// Room that stays empty takes no memory, but growing copies the column.
template <typename T>
void make_room(std::vector<T>& column, size_t more) {
  size_t rows = column.size() + more;
  if (rows > column.capacity()) column.reserve(rows + rows / 2 + 64);
}

struct Ops {
  std::vector<uint64_t> op_id, parent, thread;
  std::vector<int64_t> start, end, duration, suspended;
  std::vector<uint32_t> name, payload_id, count;
  std::vector<uint16_t> category, flags;
  int64_t now = 0;
  bool open_too = false;
  uint64_t lost = 0, unmarked = 0;
  uint64_t tid = 0;

  void reserve(size_t more) {
    for (auto* column : {&op_id, &parent, &thread}) make_room(*column, more);
    for (auto* column : {&start, &end, &duration, &suspended}) make_room(*column, more);
    for (auto* column : {&name, &payload_id, &count}) make_room(*column, more);
    for (auto* column : {&category, &flags}) make_room(*column, more);
  }

  void add(const OpRecord& r) {
    op_id.push_back(r.op_id);
    parent.push_back(r.parent);
    start.push_back(r.start);
    end.push_back(r.end);
    duration.push_back(r.duration);
    suspended.push_back(r.suspended);
    name.push_back(r.name);
    payload_id.push_back(r.payload_id);
    count.push_back(r.count);
    category.push_back(r.category);
    flags.push_back(r.flags);
    thread.push_back(tid);
  }

  void add_open(Entry e, bool suspended) {
    if (!e.has_row()) return;
    auto flags = uint16_t(kOpOpen | (e.statement_row ? kOpCoalesced : 0));
    if (suspended && !is_operator(e.category)) {
      e.resume(now);
      flags |= kOpSuspended;
    }
    add({e.op_id, e.parent, e.start, now, e.duration_until(now), e.suspended, e.name,
         e.payload_id, 1, e.category, flags});
  }

  void add_short_pauses(ShortPauses& pauses) {
    if (!pauses.row.count) return;
    add(pauses.row);
    pauses.row.count = 0;
    pauses.row.duration = 0;
  }

  void add_coalesced(CoalescedStatement& row) {
    if (!row.count) return;
    const Statement* s = statement(row.key);
    add({row.op_id, row.parent, row.first_start, row.last_end, row.duration, row.suspended,
         s ? s->name : 0, row.key, row.count, kStatement, kOpCoalesced});
    row.count = 0;
    row.duration = row.suspended = 0;
  }
};

struct Launches {
  std::vector<uint64_t> correlation, op, thread;
  std::vector<int64_t> start, end;
  std::vector<uint32_t> name, stack;
  std::vector<int32_t> result;
  std::vector<uint16_t> flags, domain;
  uint64_t lost = 0;

  void reserve(size_t more) {
    for (auto* column : {&correlation, &op, &thread}) make_room(*column, more);
    for (auto* column : {&start, &end}) make_room(*column, more);
    for (auto* column : {&flags, &domain}) make_room(*column, more);
    for (auto* column : {&name, &stack}) make_room(*column, more);
    make_room(result, more);
  }

  void add(const LaunchRecord& r, uint64_t tid) {
    correlation.push_back(r.correlation);
    op.push_back(r.op);
    start.push_back(r.start);
    end.push_back(r.end);
    name.push_back(r.name);
    result.push_back(r.result);
    flags.push_back(r.flags);
    domain.push_back(r.domain);
    stack.push_back(r.stack);
    thread.push_back(tid);
  }
};

}  // namespace
}  // namespace epprof

using namespace epprof;

extern "C" epprof_columns* epprof_drain_ops(int64_t end_ns, int open_too, uint64_t counts[2]) {
  Ops ops;
  ops.now = end_ns;
  ops.open_too = open_too != 0;
  for_each_thread(
      [](ThreadState* t, void* data) {
        auto& ops = *static_cast<Ops*>(data);
        StackLockGuard stack_lock(t);
        ops.tid = t->tid;
        t->logs_flushed = t->ended.load(std::memory_order_acquire);  // no op follows
        ops.reserve(t->ops.pending());
        t->ops.consume(op_pool, [&](const OpRecord& r) { ops.add(r); });
        ops.lost += t->ops.lost.exchange(0);
        if (t->epoch != epoch.load()) return;
        ops.unmarked += std::exchange(t->recursion.unmarked, 0);
        for (CoalescedStatement& row : t->coalesced.rows) ops.add_coalesced(row);
        ops.add_short_pauses(t->short_pauses);
        if (!ops.open_too) return;
        for (uint32_t i = 0; i < t->depth; i++) ops.add_open(t->stack[i], false);
        for_each_waiting(
            t,
            [](const Entry& e, bool suspended, void* data) {
              static_cast<Ops*>(data)->add_open(e, suspended);
            },
            &ops);
      },
      &ops);
  if (open_too) {
    for_each_suspended(
        [](const Entry& e, uint64_t tid, void* data) {
          auto& ops = *static_cast<Ops*>(data);
          ops.tid = tid;
          ops.add_open(e, true);
        },
        &ops);
  }
  counts[0] = ops.lost;
  counts[1] = ops.unmarked;
  auto* columns = new Columns;
  columns->add("op_id", std::move(ops.op_id));
  columns->add("parent_op_id", std::move(ops.parent));
  columns->add("start_ns", std::move(ops.start));
  columns->add("end_ns", std::move(ops.end));
  columns->add("duration_ns", std::move(ops.duration));
  columns->add("suspended_ns", std::move(ops.suspended));
  columns->add("name_id", std::move(ops.name));
  columns->add("payload_id", std::move(ops.payload_id));
  columns->add("count", std::move(ops.count));
  columns->add("category", std::move(ops.category));
  columns->add("flags", std::move(ops.flags));
  columns->add("thread_id", std::move(ops.thread));
  return columns;
}

extern "C" epprof_columns* epprof_drain_node_usage() {
  struct NodeUsage {
    std::vector<uint64_t> op_id;
    std::vector<int64_t> arena_held, in_use, requested, peak;
    std::vector<int64_t> arena_held_delta, in_use_delta, requested_delta, pool_start, pool_wait;
  } all;
  for_each_thread(
      [](ThreadState* t, void* data) {
        auto& all = *static_cast<NodeUsage*>(data);
        t->node_usage.consume(op_pool, [&](const NodeUsageRecord& r) {
          all.op_id.push_back(r.op_id);
          all.arena_held.push_back(r.arena_held);
          all.in_use.push_back(r.in_use);
          all.requested.push_back(r.requested);
          all.peak.push_back(r.peak);
          all.arena_held_delta.push_back(r.arena_held_delta);
          all.in_use_delta.push_back(r.in_use_delta);
          all.requested_delta.push_back(r.requested_delta);
          all.pool_start.push_back(r.pool_start);
          all.pool_wait.push_back(r.pool_wait);
        });
      },
      &all);
  auto* columns = new Columns;
  columns->add("op_id", std::move(all.op_id));
  columns->add("arena_held_bytes", std::move(all.arena_held));
  columns->add("in_use_bytes", std::move(all.in_use));
  columns->add("requested_bytes", std::move(all.requested));
  columns->add("peak_bytes", std::move(all.peak));
  columns->add("arena_held_delta_bytes", std::move(all.arena_held_delta));
  columns->add("in_use_delta_bytes", std::move(all.in_use_delta));
  columns->add("requested_delta_bytes", std::move(all.requested_delta));
  columns->add("pool_start_ns", std::move(all.pool_start));
  columns->add("pool_wait_ns", std::move(all.pool_wait));
  return columns;
}

extern "C" epprof_columns* epprof_drain_op_stacks() {
  struct OpStacks {
    std::vector<uint64_t> op_id;
    std::vector<uint32_t> stack;
  } all;
  for_each_thread(
      [](ThreadState* t, void* data) {
        auto& all = *static_cast<OpStacks*>(data);
        t->op_stacks.consume(op_pool, [&](const OpStackRecord& r) {
          all.op_id.push_back(r.op_id);
          all.stack.push_back(r.stack);
        });
      },
      &all);
  auto* columns = new Columns;
  columns->add("op_id", std::move(all.op_id));
  columns->add("op_stack", std::move(all.stack));
  return columns;
}

extern "C" epprof_columns* epprof_ended_threads() {
  struct Threads {
    std::vector<uint64_t> id;
    std::vector<uint32_t> name;
  } ended;
  for_each_thread(
      [](ThreadState* t, void* data) {
        if (!t->ended.load(std::memory_order_acquire)) return;
        auto& ended = *static_cast<Threads*>(data);
        ended.id.push_back(t->tid);
        ended.name.push_back(intern(t->name));
      },
      &ended);
  auto* columns = new Columns;
  columns->add("thread_id", std::move(ended.id));
  columns->add("name_id", std::move(ended.name));
  return columns;
}

extern "C" epprof_columns* epprof_drain_launches(uint64_t* lost) {
  Launches all;
  for_each_thread(
      [](ThreadState* t, void* data) {
        auto& all = *static_cast<Launches*>(data);
        // Add the call in progress first. If it ends meanwhile, its record follows and replaces
        // this one.
        LaunchRecord call;
        if (call_in_progress(t, &call)) all.add(call, t->tid);
        all.reserve(t->launches.pending());
        t->launches.consume(launch_pool, [&](const LaunchRecord& r) { all.add(r, t->tid); });
        all.lost += t->launches.lost.exchange(0);
      },
      &all);
  free_ended_threads();
  *lost = all.lost;
  auto* columns = new Columns;
  columns->add("correlation_id", std::move(all.correlation));
  columns->add("op_id", std::move(all.op));
  columns->add("start_ns", std::move(all.start));
  columns->add("end_ns", std::move(all.end));
  columns->add("name_id", std::move(all.name));
  columns->add("return_value", std::move(all.result));
  columns->add("flags", std::move(all.flags));
  columns->add("domain", std::move(all.domain));
  columns->add("stack_id", std::move(all.stack));
  columns->add("thread_id", std::move(all.thread));
  return columns;
}
