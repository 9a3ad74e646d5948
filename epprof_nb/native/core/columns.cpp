#include "core/columns.h"

#include <string.h>

using epprof::Columns;

size_t epprof_columns_count(const epprof_columns* columns) { return columns->columns.size(); }

const char* epprof_columns_name(const epprof_columns* columns, size_t i) {
  return columns->columns[i].name;
}

size_t epprof_columns_bytes(const epprof_columns* columns, size_t i) {
  size_t bytes = 0;
  for (const Columns::Part& part : columns->columns[i].parts) bytes += part.bytes;
  return bytes;
}

void epprof_columns_copy(const epprof_columns* columns, size_t i, void* to) {
  auto* at = static_cast<unsigned char*>(to);
  for (const Columns::Part& part : columns->columns[i].parts) {
    if (part.bytes) memcpy(at, part.data, part.bytes);
    at += part.bytes;
  }
}

void epprof_columns_free(epprof_columns* columns) { delete columns; }
