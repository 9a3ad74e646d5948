#include "core/columns.h"

#include <string.h>

using epprof::Columns;

size_t ep_columns_count(const ep_columns* columns) { return columns->columns.size(); }

const char* ep_columns_name(const ep_columns* columns, size_t i) {
  return columns->columns[i].name;
}

size_t ep_columns_bytes(const ep_columns* columns, size_t i) {
  size_t bytes = 0;
  for (const Columns::Part& part : columns->columns[i].parts) bytes += part.bytes;
  return bytes;
}

void ep_columns_copy(const ep_columns* columns, size_t i, void* to) {
  auto* at = static_cast<unsigned char*>(to);
  for (const Columns::Part& part : columns->columns[i].parts) {
    if (part.bytes) memcpy(at, part.data, part.bytes);
    at += part.bytes;
  }
}

void ep_columns_free(ep_columns* columns) { delete columns; }
