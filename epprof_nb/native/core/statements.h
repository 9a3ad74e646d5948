// The statements of instrumented cells, by key.
#pragma once

#include <cstddef>
#include <cstdint>

namespace epprof {

constexpr int32_t kInFunction = -2;  // the number of recording/statements/statement_registry.py

struct Statement {
  int32_t parent;  // key of the enclosing statement in the same body; -1: none, or kInFunction
  uint32_t name;
};

// Registers `count` statements; parents are indices within the batch, -1 or kInFunction. Returns the
// first key, or UINT32_MAX if the table is full.
uint32_t add_statements(const int32_t* parents, const uint32_t* names, size_t count);
// The statement of `key`, or null for an unknown key. Lock-free.
const Statement* statement(uint32_t key);
bool is_in_function(uint32_t key);

}  // namespace epprof
