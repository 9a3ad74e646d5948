// The statements of instrumented cells: for each key, what encloses it and what it is called.
#pragma once

#include <cstddef>
#include <cstdint>

namespace epprof {

struct Statement {
  int32_t parent;  // key of the enclosing statement of the same body, or -1
  uint32_t name;
};

// Registers `count` statements whose parents are indices within the batch; returns the first key.
uint32_t add_statements(const int32_t* parents, const uint32_t* names, size_t count);
// The statement of `key`, or null for a key never registered. Lock-free.
const Statement* statement(uint32_t key);

}  // namespace epprof
