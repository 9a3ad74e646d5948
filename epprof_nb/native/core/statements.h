// The statements of instrumented cells, by key.
#pragma once

#include <cstddef>
#include <cstdint>

namespace epprof {

// The numbers of recording/statements/statement_registry.py.
constexpr int32_t kInFunction = -2;
constexpr int32_t kInGenerator = -3;  // or in a coroutine

struct Statement {
  int32_t parent;  // key of the enclosing statement in the same body; -1: none, or one of these
  uint32_t name;
};

// Registers `count` statements; parents are indices within the batch or negative. Returns the
// first key, or UINT32_MAX if the table is full.
uint32_t add_statements(const int32_t* parents, const uint32_t* names, size_t count);
// The statement of `key`, or null for an unknown key. Lock-free.
const Statement* statement(uint32_t key);
bool is_in_function(uint32_t key);  // or in a generator or coroutine
bool is_in_generator(uint32_t key);

}  // namespace epprof
