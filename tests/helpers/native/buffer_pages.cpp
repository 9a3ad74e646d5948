// A buffer keeps the first pages that were written, also if a flush returns it half empty, and its
// bytes are zero whenever it is taken. After a session only the buffer with the most pages has any.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cupti/buffer_pool.h"

using epprof::BufferPool;

namespace {

constexpr size_t kBytes = 4 * BufferPool::kKept, kHalf = BufferPool::kKept / 2;
const size_t page = size_t(sysconf(_SC_PAGESIZE));

size_t present(uint8_t* buffer) {
  std::vector<unsigned char> found(kBytes / page);
  if (mincore(buffer, kBytes, found.data()) != 0) abort();
  return page * size_t(std::count_if(found.begin(), found.end(), [](int c) { return c & 1; }));
}

void expect(const char* what, size_t found, size_t wanted) {
  if (found == wanted) return;
  fprintf(stderr, "%s: %zu instead of %zu\n", what, found, wanted);
  exit(1);
}

// Writes a buffer as CUPTI does.
void use(uint8_t* buffer, size_t bytes) {
  for (size_t at = 0, end = present(buffer); at < end; at++) expect("byte", buffer[at], 0);
  memset(buffer, 1, bytes);
}

void fill(BufferPool& pool, size_t bytes) {
  uint8_t* buffer = pool.get();
  use(buffer, bytes);
  pool.put(buffer, bytes);
}

}  // namespace

int main() {
  BufferPool pool;
  pool.configure(kBytes, 2);
  uint8_t* buffer = pool.get();
  pool.put(buffer, 0);
  expect("pages of the first buffer", present(buffer), BufferPool::kKept);
  fill(pool, kBytes);
  fill(pool, 100);
  expect("pages after a flush of a full buffer", present(buffer), BufferPool::kKept);

  // Two threads have a buffer each, and the one with little in it is returned last.
  uint8_t *most = pool.get(), *least = pool.get();
  use(most, 100);
  use(least, kHalf);
  pool.put(most, 100);
  pool.put(least, kHalf);
  expect("pages of the second buffer", present(least), kHalf);
  pool.trim();
  expect("pages of the least used buffer", present(least), 0);
  expect("pages of the most used buffer", present(most), BufferPool::kKept);
  expect("the next buffer is the most used", pool.get() == most, true);
  pool.put(most, 0);

  pool.put(reinterpret_cast<uint8_t*>(&pool), 0);  // of another pool
  expect("buffers out", pool.out(), 0);
  pool.configure(2 * kBytes, 2);
  pool.trim();
  expect("a byte of a larger buffer", *pool.get(), 0);
}
