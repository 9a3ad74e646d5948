// Named ops, on the op stack of each thread.
#pragma once

#include "core/stack_entries.h"

namespace epprof {

// `frame`: the generator or coroutine frame that the op belongs to; 0: none.
uint64_t push_op(uint32_t name, uint16_t category, uint32_t payload_id, const void* owner,
                 uint64_t frame);
// For work that another thread waits for. Without an open op on this thread, the parent is
// `parent`. Another thread may end the op.
uint64_t push_worker_op(uint32_t name, uint16_t category, uint32_t payload_id, uint64_t parent);
// An operator or a node. On a worker thread without an open op, the parent is `parent`; if that is
// 0, opens nothing and returns 0.
uint64_t push_operator(uint32_t name, uint16_t category, uint32_t payload_id, int64_t sequence,
                       uint64_t parent, bool is_worker);
bool pop_op(uint64_t op_id);
bool pop_op_of_any_thread(uint64_t op_id);
bool pop_owner(const void* owner);  // the topmost op that `owner` opened
uint64_t top_op();

}  // namespace epprof
