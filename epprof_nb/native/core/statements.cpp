#include "core/statements.h"

#include <atomic>

#include "core/fork.h"

namespace epprof {
namespace {

constexpr uint32_t kBlock = 4096;
constexpr uint32_t kBlocks = 16384;

// Blocks never move, so readers need no lock.
std::atomic<Statement*> blocks[kBlocks];
std::atomic<uint32_t> used{0};
ForkSafeMutex statements_mutex;

int32_t outermost_parent(uint32_t key) {
  const Statement* s = statement(key);
  while (s && s->parent >= 0) s = statement(uint32_t(s->parent));
  return s ? s->parent : -1;
}

}  // namespace

uint32_t add_statements(const int32_t* parents, const uint32_t* names, size_t count) {
  ForkLockGuard lock(statements_mutex);
  uint32_t first = used.load(std::memory_order_relaxed);
  if (count > size_t(kBlock) * kBlocks - first) return UINT32_MAX;
  for (size_t i = 0; i < count; i++) {
    uint32_t key = first + uint32_t(i);
    Statement* block = blocks[key / kBlock].load(std::memory_order_relaxed);
    if (!block) {
      block = new Statement[kBlock];
      blocks[key / kBlock].store(block, std::memory_order_release);
    }
    int32_t parent = parents[i] < 0 ? parents[i] : int32_t(first) + parents[i];
    block[key % kBlock] = {parent, names[i]};
  }
  used.store(first + uint32_t(count), std::memory_order_release);
  return first;
}

const Statement* statement(uint32_t key) {
  if (key >= used.load(std::memory_order_acquire)) return nullptr;
  return &blocks[key / kBlock].load(std::memory_order_relaxed)[key % kBlock];
}

bool is_in_function(uint32_t key) { return outermost_parent(key) <= kInFunction; }
bool is_in_generator(uint32_t key) { return outermost_parent(key) == kInGenerator; }

}  // namespace epprof
