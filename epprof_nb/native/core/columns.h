// Named columns, given to Python through plain C accessors.
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
// Sets `data` to the column in one piece. Returns its owner, to free with `epprof_column_free`; null
// if memory is exhausted.
void* epprof_columns_take(epprof_columns* columns, size_t i, const void** data, size_t* bytes);
void epprof_column_free(void* owner);
void epprof_columns_free(epprof_columns* columns);

#ifdef __cplusplus
}
#endif
