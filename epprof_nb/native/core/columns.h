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
    std::shared_ptr<void> owner;  // owns the memory of the parts
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
typedef epprof::Columns ep_columns;
#else
typedef struct ep_columns ep_columns;
#endif

size_t ep_columns_count(const ep_columns* columns);
const char* ep_columns_name(const ep_columns* columns, size_t i);
size_t ep_columns_bytes(const ep_columns* columns, size_t i);
void ep_columns_copy(const ep_columns* columns, size_t i, void* to);
void ep_columns_free(ep_columns* columns);

#ifdef __cplusplus
}
#endif
