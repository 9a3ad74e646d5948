#include "core/columns.h"

#include <stdlib.h>
#include <string.h>

using epprof::Columns;

size_t epprof_columns_count(const epprof_columns* columns) { return columns->columns.size(); }

const char* epprof_columns_name(const epprof_columns* columns, size_t i) {
  return columns->columns[i].name;
}

void* epprof_columns_take(epprof_columns* columns, size_t i, const void** data, size_t* bytes) {
  Columns::Column& column = columns->columns[i];
  *bytes = 0;
  for (const Columns::Part& part : column.parts) *bytes += part.bytes;
  if (column.parts.size() == 1) {
    *data = column.parts[0].data;
    return new std::shared_ptr<void>(std::move(column.owner));
  }
  auto* copy = static_cast<unsigned char*>(malloc(*bytes + 1));
  if (!copy) return nullptr;
  auto* at = copy;
  for (const Columns::Part& part : column.parts) {
    if (part.bytes) memcpy(at, part.data, part.bytes);
    at += part.bytes;
  }
  *data = copy;
  return new std::shared_ptr<void>(copy, free);
}

void epprof_column_free(void* owner) { delete static_cast<std::shared_ptr<void>*>(owner); }

void epprof_columns_free(epprof_columns* columns) { delete columns; }
