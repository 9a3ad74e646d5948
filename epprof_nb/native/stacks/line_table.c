/* Line tables of code objects, in the format of Python 3.11 and newer: Objects/locations.md of
   CPython. An entry begins with a byte whose top bit is set. */
#include "stacks/walker.h"

enum { CODE_NO_LOCATION = 15, CODE_LONG = 14, CODE_NO_COLUMNS = 13, CODE_ONE_LINE_0 = 10 };

static uint32_t read_varint(const unsigned char** at, const unsigned char* end) {
  uint32_t value = 0;
  for (unsigned shift = 0; *at < end && shift < 32; shift += 6) {
    unsigned char byte = *(*at)++;
    value |= (uint32_t)(byte & 63) << shift;
    if (!(byte & 64)) break;
  }
  return value;
}

int32_t epprof_line_at(const unsigned char* table, size_t bytes, int32_t first_line,
                       int32_t offset) {
  const unsigned char *at = table, *end = table + bytes;
  int32_t line = first_line, start = 0;
  if (offset < 0) return first_line; /* as PyCode_Addr2Line */
  while (at < end) {
    unsigned char head = *at++;
    int code = head >> 3 & 15;
    int32_t next = start + 2 * ((head & 7) + 1);
    if (code == CODE_NO_COLUMNS || code == CODE_LONG) {
      uint32_t delta = read_varint(&at, end);
      line += delta & 1 ? -(int32_t)(delta >> 1) : (int32_t)(delta >> 1);
    } else if (code >= CODE_ONE_LINE_0 && code < CODE_NO_COLUMNS) {
      line += code - CODE_ONE_LINE_0;
    }
    if (offset < next) return code == CODE_NO_LOCATION ? -1 : line;
    while (at < end && !(*at & 128)) at++; /* columns */
    start = next;
  }
  return -1;
}
