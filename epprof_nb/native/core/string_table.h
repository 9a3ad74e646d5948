// The string table of the process: interned strings have ids and are never freed. It holds strings
// whose number depends on the code, such as statements and kernels. Each session keeps its own
// names of ops. Beyond a bound, new strings get the id of "(other names)".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace epprof {

constexpr uint32_t kOtherNamesId = 1;

uint32_t intern(std::string_view text);  // the id; 0 is the empty string
std::string_view intern(std::string_view text, uint32_t* id);  // the stored copy
std::vector<std::string> strings_from(uint32_t first);         // ids `first` and up
uint32_t string_count();  // all ids below it have a string

}  // namespace epprof
