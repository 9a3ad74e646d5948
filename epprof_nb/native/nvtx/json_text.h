// Texts as JSON.
#pragma once

#include <cstddef>
#include <string>

namespace epprof::nvtx {

// Appends a text as JSON. Bytes that are not UTF-8 become replacement characters; of a text that is
// cut at its end, the last character is left out if it is not complete.
void add_quoted(std::string& json, const char* text, size_t length, bool is_cut = false);

}  // namespace epprof::nvtx
