// Named columns, returned to Python through plain C accessors.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
#include <memory>
#include <utility>
#include <vector>

namespace epprof {

struct Columns {
  struct Part {
    const void* data;
    size_t bytes;
  };
  struct Column {
    const char* name;
    std::vector<Part> parts;
    std::shared_ptr<void> owner;  // keeps the memory of the parts
  };
  std::vector<Column> columns;

  template <typename T>
  void add(const char* name, std::vector<T> values) {
    auto owner = std::make_shared<std::vector<T>>(std::move(values));
    columns.push_back({name, {{owner->data(), owner->size() * sizeof(T)}}, owner});
  }
};

}  // namespace epprof

extern "C" {
typedef epprof::Columns epprof_columns;
#else
typedef struct epprof_columns epprof_columns;
#endif

size_t epprof_columns_count(const epprof_columns* columns);
const char* epprof_columns_name(const epprof_columns* columns, size_t i);
size_t epprof_columns_bytes(const epprof_columns* columns, size_t i);
void epprof_columns_copy(const epprof_columns* columns, size_t i, void* to);
void epprof_columns_free(epprof_columns* columns);

#ifdef __cplusplus
}
#endif
