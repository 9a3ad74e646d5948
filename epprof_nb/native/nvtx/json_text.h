// Text as JSON.
#pragma once

#include <cstddef>
#include <string>

namespace epprof::nvtx {

// Appends a text as JSON. Bytes that are not UTF-8 become replacement characters; if the text is
// cut at its end, an incomplete last character is removed.
void add_quoted(std::string& json, const char* text, size_t length, bool is_cut = false);

}  // namespace epprof::nvtx
