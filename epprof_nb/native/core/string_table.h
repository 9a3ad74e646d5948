// Names as small numbers: interned once a process, never freed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace epprof {

uint32_t intern(std::string_view name);        // 0 is the empty name
std::string_view interned(std::string_view name, uint32_t* id);  // ... and the text that is kept
std::vector<std::string> names_from(uint32_t first);

}  // namespace epprof
