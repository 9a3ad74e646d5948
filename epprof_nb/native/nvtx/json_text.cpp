#include "nvtx/json_text.h"

#include <cstdio>

namespace epprof::nvtx {
namespace {

// Bytes of a UTF-8 character, by its first byte; 0: no character begins with it.
size_t utf8_length(unsigned char c) {
  if (c < 0x80) return 1;
  if (c < 0xc2 || c > 0xf4) return 0;
  return c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

bool is_utf8(const char* text, size_t length) {
  auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  for (size_t i = 1; i < length; i++) {
    if ((byte(i) & 0xc0) != 0x80) return false;
  }
  switch (byte(0)) {  // not overlong, not a surrogate, not beyond Unicode
    case 0xe0: return byte(1) >= 0xa0;
    case 0xed: return byte(1) < 0xa0;
    case 0xf0: return byte(1) >= 0x90;
    case 0xf4: return byte(1) < 0x90;
    default: return true;
  }
}

}  // namespace

void add_quoted(std::string& json, const char* text, size_t length, bool is_cut) {
  json += '"';
  for (size_t i = 0; i < length; i++) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80) {
      size_t bytes = utf8_length(c);
      if (is_cut && bytes > length - i) break;
      if (bytes && bytes <= length - i && is_utf8(text + i, bytes)) {
        json.append(text + i, bytes);
        i += bytes - 1;
      } else {
        json += "\xef\xbf\xbd";
      }
      continue;
    }
    if (c == '"' || c == '\\') {
      json += {'\\', char(c)};
    } else if (c < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      json += escaped;
    } else {
      json += char(c);
    }
  }
  json += '"';
}

}  // namespace epprof::nvtx
