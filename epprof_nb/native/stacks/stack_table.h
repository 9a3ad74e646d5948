// The stacks that a thread has seen: a calling-context tree, found by the hash of its frames.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
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

// The part of a table that a drain takes.
struct NewStacks {
  std::vector<StackNode> nodes;
  std::vector<std::shared_ptr<const CodeCopy>> codes;
};

// The nodes that one thread adds, each once.
class StackNodes {
 public:
  StackNodes() = default;
  ~StackNodes();
  StackNodes(const StackNodes&) = delete;
  StackNodes& operator=(const StackNodes&) = delete;

  void clear();
  // The node of a frame below `parent`, which is kNoStack for an outermost frame. Returns kNoStack
  // if the memory for stacks is used up.
  uint32_t node(uint32_t parent, const std::shared_ptr<const CodeCopy>& code, int32_t offset);
  // Null: the memory for stacks is used up.
  std::shared_ptr<const CodeCopy> add(CodeCopy&& code);
  NewStacks take() { return std::exchange(new_, {}); }

 private:
  bool account(size_t bytes);

  FlatMap nodes_;
  NewStacks new_;
  size_t bytes_ = 0;
};

// Different for each code object, even for successive ones at one address.
uint64_t key_of_code(uintptr_t address);
size_t kept_line_table(size_t bytes);  // of a line table of this size
std::string copy_text(const epprof_text& text);
size_t kept_text(size_t length);  // characters of a text of this length

// Only its thread looks stacks up. A lock guards new nodes for the drain; the thread takes it when
// it adds a stack.
class StackTable final : public ThreadExtra {
 public:
  // The stack of the calling thread, whose PyThreadState is `thread`.
  uint32_t current(const void* thread);
  NewStacks take(uint64_t session);
  void release();  // while no walk can begin

  epprof_base base{};  // of a call that the thread is in

 private:
  uint32_t add(const void* thread, uint64_t hash);
  std::shared_ptr<const CodeCopy> code(const void* object);
  void start(uint64_t session);

  std::atomic<bool> lock_{false};
  uint64_t session_ = 0;
  FlatMap stacks_, code_rows_;
  std::vector<std::shared_ptr<const CodeCopy>> codes_;
  StackNodes nodes_;
};

// Takes the stacks that were sampled; null if none were. They are drained with the others.
extern std::atomic<NewStacks (*)(uint64_t session)> take_sampled_stacks;

// Numbers of the running session, whose stacks are counted from 0.
struct StackCounts {
  std::atomic<uint64_t> session{1};
  std::atomic<uint32_t> nodes{0}, codes{0};
  std::atomic<uint64_t> truncated{0}, dropped{0};
  std::atomic<size_t> bytes{0};  // of all tables
  std::atomic<size_t> max_bytes{size_t(256) << 20};
};
extern StackCounts stack_counts;

}  // namespace epprof
