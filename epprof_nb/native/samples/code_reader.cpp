#include "samples/code_reader.h"

#include <algorithm>

namespace epprof {

namespace {

constexpr size_t kObjectType = 8, kObjectSize = 16;  // ob_type, and ob_size in bytecode units
constexpr size_t kMaxCode = 512;                     // bytes of a code object before its bytecode
constexpr uint64_t kMaxUnits = 1 << 28;

}  // namespace

// Like read_text of stacks/walker.c, which can trust the memory.
bool CodeReader::copy_string(uintptr_t object, std::string* copied) const {
  char head[64];
  if (!object || !memory_.read(object, head, layout_.ascii_size)) return false;
  uint32_t bits = at_offset<uint32_t>(head, layout_.text_state) >> layout_.kind_shift;
  uint32_t kind = bits & 7;
  bool is_compact = bits >> 3 & 1, is_ascii = bits >> 4 & 1;
  if (kind != 1 && kind != 2 && kind != 4) return false;
  size_t length = kept_text(at_offset<size_t>(head, layout_.text_length));
  uintptr_t data = object + (is_ascii ? layout_.ascii_size : layout_.compact_size);
  if (!is_compact && !memory_.read(object + layout_.compact_size, &data)) return false;
  std::vector<uint32_t> characters((length * kind + 3) / 4 + 1);
  if (length && !memory_.read(data, characters.data(), length * kind)) return false;
  *copied = copy_text({characters.data(), length, kind});
  return true;
}

bool CodeReader::copy(uintptr_t code, KnownCode* known, CodeCopy* copy) const {
  char head[kMaxCode];
  if (!memory_.read(code, head, layout_.code_instructions)) return false;
  auto units = at_offset<uint64_t>(head, kObjectSize);
  auto first = at_offset<int32_t>(head, layout_.code_first_traceable);
  bool is_code = at_offset<uintptr_t>(head, kObjectType) == code_type_ && units <= kMaxUnits &&
                 first >= 0 && uint64_t(first) <= units;
  if (!is_code) return false;
  known->instructions = code + layout_.code_instructions;
  known->end = known->instructions + 2 * units;
  known->first_shown = known->instructions + 2 * uintptr_t(first);
  copy->first_line = at_offset<int32_t>(head, layout_.code_first_line);
  auto table = at_offset<uintptr_t>(head, layout_.code_line_table);
  size_t bytes = 0;
  if (table && !memory_.read(table + layout_.bytes_size, &bytes)) return false;
  copy->line_table.resize(kept_line_table(bytes));
  return (copy->line_table.empty() ||
          memory_.read(table + layout_.bytes_data, copy->line_table.data(),
                       copy->line_table.size())) &&
         copy_string(at_offset<uintptr_t>(head, layout_.code_file), &copy->file) &&
         copy_string(at_offset<uintptr_t>(head, layout_.code_qualname), &copy->function);
}

const KnownCode* CodeReader::known(uintptr_t code) const {
  auto found = known_.find(key_of_code(code));
  return found == known_.end() ? nullptr : &found->second;
}

const KnownCode* CodeReader::read(uintptr_t code, StackNodes* nodes) {
  uint64_t key = key_of_code(code);
  auto found = known_.find(key);
  if (found != known_.end()) return &found->second;
  KnownCode known;
  CodeCopy copied{};
  if (!code || !copy(code, &known, &copied)) return nullptr;
  known.copy = nodes->add(std::move(copied));
  if (!known.copy) return nullptr;
  new_.push_back(key);
  return &known_.emplace(key, std::move(known)).first->second;
}

void CodeReader::drop_new() {
  for (uint64_t key : new_) known_.erase(key);
  new_.clear();
}

void CodeReader::clear() {
  known_.clear();
  new_.clear();
}

}  // namespace epprof
