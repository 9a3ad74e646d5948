// Copies of code objects that another thread executes, and may free.
#pragma once

#include <memory>
#include <unordered_map>

#include "samples/frame_reader.h"
#include "stacks/stack_table.h"

namespace epprof {

struct KnownCode {
  std::shared_ptr<const CodeCopy> copy;
  uintptr_t instructions, end;  // of the bytecode
  uintptr_t first_shown;        // a frame before it is not complete, and sys._getframe skips it
};

class CodeReader {
 public:
  CodeReader(const MemoryReader& memory, const epprof_frame_layout& layout, uintptr_t code_type)
      : memory_(memory), layout_(layout), code_type_(code_type) {}

  // Null if it is not a code object, or there is no memory for it.
  const KnownCode* read(uintptr_t code, StackNodes* nodes);
  const KnownCode* known(uintptr_t code) const;  // null if it was not read before
  // Forgets the code objects that were copied since `keep`, because one may have been freed.
  void drop_new();
  void keep() { new_.clear(); }
  void clear();

 private:
  bool copy(uintptr_t code, KnownCode* known, CodeCopy* copy) const;
  bool copy_string(uintptr_t text, std::string* copied) const;

  const MemoryReader& memory_;
  epprof_frame_layout layout_;
  uintptr_t code_type_;
  std::unordered_map<uint64_t, KnownCode> known_;
  std::vector<uint64_t> new_;
};

}  // namespace epprof
