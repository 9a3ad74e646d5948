// The stacks that a thread has seen: a calling-context tree, found by the hash of its frames.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/thread_state.h"
#include "stacks/flat_map.h"
#include "stacks/walker.h"

namespace epprof {

// A copy of a code object's data, because the object may be freed.
struct CodeCopy {
  uint32_t id;
  int32_t first_line;
  std::string file, function;  // UTF-8
  std::vector<unsigned char> line_table;
};

struct StackNode {
  uint32_t id, parent;  // kNoStack: an outermost frame
  std::shared_ptr<const CodeCopy> code;
  int32_t offset;
};

// What the drain takes from a table.
struct NewStacks {
  std::vector<StackNode> nodes;
  std::vector<std::shared_ptr<const CodeCopy>> codes;
};

// Only its thread looks stacks up. A lock guards what is new, for the drain: the thread takes it at
// the first sight of a stack.
class StackTable final : public ThreadExtra {
 public:
  ~StackTable() override;

  // The stack of the calling thread, whose PyThreadState is `thread`.
  uint32_t current(const void* thread);
  NewStacks take(uint64_t session);
  void release();  // while no walk can begin

 private:
  uint32_t add(const void* thread, uint64_t hash);
  std::shared_ptr<const CodeCopy> code(const void* object);
  void start(uint64_t session);
  bool account(size_t bytes);

  std::atomic<bool> lock_{false};
  uint64_t session_ = 0;
  FlatMap stacks_, nodes_, code_rows_;
  std::vector<std::shared_ptr<const CodeCopy>> codes_;
  NewStacks new_;
  size_t bytes_ = 0;
};

// Numbers of the running session: its stacks begin with 0.
struct StackCounts {
  std::atomic<uint64_t> session{1};
  std::atomic<uint32_t> nodes{0}, codes{0};
  std::atomic<uint64_t> truncated{0}, dropped{0};
  std::atomic<size_t> bytes{0};  // of all tables
  std::atomic<size_t> max_bytes{size_t(256) << 20};
};
extern StackCounts stack_counts;

}  // namespace epprof
