// The statements of instrumented cells, by key.
#pragma once

#include <cstddef>
#include <cstdint>

namespace epprof {

struct Statement {
  int32_t parent;  // key of the enclosing statement in the same body, or -1
  uint32_t name;
};

// Registers `count` statements; parents are indices within the batch or -1. Returns the first key,
// or UINT32_MAX if the table is full.
uint32_t add_statements(const int32_t* parents, const uint32_t* names, size_t count);
// The statement of `key`, or null for an unknown key. Lock-free.
const Statement* statement(uint32_t key);

}  // namespace epprof
