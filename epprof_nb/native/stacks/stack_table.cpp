#include "stacks/stack_table.h"

#include <string.h>

#include <algorithm>

namespace epprof {

StackCounts stack_counts;
std::atomic<NewStacks (*)(uint64_t)> take_sampled_stacks{nullptr};

namespace {

constexpr size_t kMaxText = 4096;           // characters of a name; longer ones are cut
constexpr size_t kMaxLineTable = 16 << 20;  // bytes; beyond, only the function's first line is known

class SpinLockGuard {
 public:
  explicit SpinLockGuard(std::atomic<bool>& lock) : lock_(lock) {
    while (lock_.exchange(true, std::memory_order_acquire)) {
    }
  }
  ~SpinLockGuard() { lock_.store(false, std::memory_order_release); }
  SpinLockGuard(const SpinLockGuard&) = delete;
  SpinLockGuard& operator=(const SpinLockGuard&) = delete;

 private:
  std::atomic<bool>& lock_;
};

// Different for different numbers, and seemingly at random.
uint64_t scatter(uint64_t number) {
  number = (number ^ number >> 32) * 0xD6E8FEB86659FD93u;
  number = (number ^ number >> 32) * 0xD6E8FEB86659FD93u;
  return number ^ number >> 32;
}

// Scatters the first number before it adds the second one: both are small or addresses, and plain
// combinations would often be equal.
uint64_t key_of(uint64_t a, uint64_t b) {
  uint64_t key = scatter(scatter(a + 1) + b);
  return key ? key : 1;
}

uint64_t key_of_node(uint32_t parent, uint32_t code, int32_t offset) {
  return key_of(uint64_t(parent) << 32 | code, uint32_t(offset));
}

void append_utf8(std::string* text, uint32_t c) {
  if (c < 0x80) {
    text->push_back(char(c));
  } else if (c < 0x800) {
    text->push_back(char(0xC0 | c >> 6));
    text->push_back(char(0x80 | (c & 63)));
  } else if (c < 0x10000) {  // including surrogates, which Python decodes as it chooses
    text->push_back(char(0xE0 | c >> 12));
    text->push_back(char(0x80 | (c >> 6 & 63)));
    text->push_back(char(0x80 | (c & 63)));
  } else {
    text->push_back(char(0xF0 | c >> 18));
    text->push_back(char(0x80 | (c >> 12 & 63)));
    text->push_back(char(0x80 | (c >> 6 & 63)));
    text->push_back(char(0x80 | (c & 63)));
  }
}

}  // namespace

size_t kept_text(size_t length) { return std::min(length, kMaxText); }
size_t kept_line_table(size_t bytes) { return bytes <= kMaxLineTable ? bytes : 0; }

std::string copy_text(const epprof_text& text) {
  std::string copy;
  size_t length = kept_text(text.length);
  copy.reserve(length);
  for (size_t i = 0; i < length; i++) {
    switch (text.kind) {
      case 1: append_utf8(&copy, static_cast<const uint8_t*>(text.data)[i]); break;
      case 2: append_utf8(&copy, static_cast<const uint16_t*>(text.data)[i]); break;
      default: append_utf8(&copy, static_cast<const uint32_t*>(text.data)[i]); break;
    }
  }
  return copy;
}

uint64_t key_of_code(uintptr_t address) {
  return key_of(address, epprof_code_version(reinterpret_cast<const void*>(address)));
}

StackNodes::~StackNodes() { stack_counts.bytes -= bytes_; }

bool StackNodes::account(size_t bytes) {
  if (stack_counts.bytes.load(std::memory_order_relaxed) + bytes > stack_counts.max_bytes) {
    return false;
  }
  stack_counts.bytes += bytes;
  bytes_ += bytes;
  return true;
}

void StackNodes::clear() {
  stack_counts.bytes -= bytes_;
  bytes_ = 0;
  nodes_.clear();
  new_ = {};
}

std::shared_ptr<const CodeCopy> StackNodes::add(CodeCopy&& code) {
  size_t texts = code.file.size() + code.function.size() + code.line_table.size();
  if (!account(sizeof(CodeCopy) + texts + 64)) return nullptr;
  code.id = stack_counts.codes++;
  new_.codes.push_back(std::make_shared<CodeCopy>(std::move(code)));
  return new_.codes.back();
}

uint32_t StackNodes::node(uint32_t parent, const std::shared_ptr<const CodeCopy>& code,
                          int32_t offset) {
  uint64_t key = key_of_node(parent, code->id, offset);
  uint32_t known = nodes_.find(key);
  if (known != FlatMap::kNone) return known;
  if (!account(sizeof(StackNode) + 64)) return kNoStack;  // with its slots in the maps
  known = stack_counts.nodes++;
  nodes_.insert(key, known);
  new_.nodes.push_back({known, parent, code, offset});
  return known;
}

void StackTable::start(uint64_t session) {
  nodes_.clear();
  stacks_.clear();
  code_rows_.clear();
  codes_.clear();
  session_ = session;
}

void StackTable::release() {
  SpinLockGuard lock(lock_);
  start(0);  // without a session
}

uint32_t StackTable::current(const void* thread) {
  uint32_t depth;
  uint64_t hash = epprof_hash_frames(thread, &base, &depth);
  if (!depth) return kNoStack;
  uint64_t session = stack_counts.session.load(std::memory_order_relaxed);
  if (session_ != session) {
    SpinLockGuard lock(lock_);
    start(session);
  }
  uint32_t known = stacks_.find(hash);
  return known != FlatMap::kNone ? known : add(thread, hash);
}

std::shared_ptr<const CodeCopy> StackTable::code(const void* object) {
  uint64_t key = key_of_code(reinterpret_cast<uintptr_t>(object));
  uint32_t row = code_rows_.find(key);
  if (row != FlatMap::kNone) return codes_[row];
  epprof_code read = epprof_read_code(object);
  CodeCopy copy;
  copy.file = copy_text(read.file);
  copy.function = copy_text(read.function);
  copy.first_line = read.first_line;
  copy.line_table.assign(read.line_table, read.line_table + kept_line_table(read.line_table_bytes));
  auto added = nodes_.add(std::move(copy));
  if (!added) return nullptr;
  code_rows_.insert(key, uint32_t(codes_.size()));
  codes_.push_back(added);
  return added;
}

uint32_t StackTable::add(const void* thread, uint64_t hash) {
  epprof_frame frames[EPPROF_MAX_FRAMES];
  int truncated;
  size_t depth = epprof_copy_frames(thread, frames, &truncated);
  SpinLockGuard lock(lock_);
  uint32_t node = kNoStack;
  for (size_t i = depth; i-- > 0;) {
    auto copy = code(frames[i].code);
    node = copy ? nodes_.node(node, copy, frames[i].offset) : kNoStack;
    if (node == kNoStack) {
      stack_counts.dropped++;
      return kNoStack;
    }
  }
  if (truncated) stack_counts.truncated++;
  stacks_.insert(hash, node);
  return node;
}

NewStacks StackTable::take(uint64_t session) {
  SpinLockGuard lock(lock_);
  return session_ == session ? nodes_.take() : NewStacks{};
}

}  // namespace epprof
