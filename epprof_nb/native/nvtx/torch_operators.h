// PyTorch's operators and autograd nodes as ops. Its NVTX observer reports them in messages such as
//   aten::linear, seq = 12, op_id = 34, sizes = [[8, 4], [4, 4], []], input_op_ids = [(0,-1)]
// with a sequence number only if autograd may create a node, and sizes only on request.
#pragma once

#include <cstdint>
#include <string_view>

namespace epprof::nvtx {

constexpr int64_t kNoSequence = -1;

struct OperatorMessage {
  std::string_view name;
  int64_t sequence;
  std::string_view sizes;  // with its brackets; empty: not given
};

bool parse_operator(std::string_view message, OperatorMessage* found);

void record_operators(bool on);
bool are_operators_recorded();
// Opens the op of a message. Returns false if the message is not an operator's. `op_id` is 0 for
// operators without a row.
bool open_operator(const char* message, uint64_t* op_id);

}  // namespace epprof::nvtx
