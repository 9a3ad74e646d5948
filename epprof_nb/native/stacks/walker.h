/* The walk over the Python frames of the calling thread. It needs no GIL: a thread's own frames do
   not change while it is in a call, and they keep their code objects alive. */
#pragma once

#include "stacks/cpython_layouts.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { EPPROF_MAX_FRAMES = 1024 }; /* Python's default limit of recursion is 1000 */

struct epprof_frame {
  const void* code;
  int32_t offset; /* of the instruction, in bytes; -1: before the first one, as in f_lasti */
};

/* Must be set before the first walk. */
void epprof_set_frame_layout(const struct epprof_frame_layout* layout);
const struct epprof_frame_layout* epprof_current_layout(void);

/* A frame that does not change, nor those around it, until a function that it calls returns. In a
   notebook, 25 frames of the kernel are around those of a cell. */
struct epprof_base {
  const void* frame; /* null: none */
  const void* instruction;
  uint64_t hash; /* of the frame and those around it */
  uint32_t depth;
};

/* The caller of the `shown`-th function on the stack, as in sys._getframe(shown). None if that is a
   generator or coroutine, which another frame may resume. */
struct epprof_base epprof_find_base(const void* thread, uint32_t shown);

/* The hash of the current frames of a thread; 0 if it has none. `depth` counts them, up to
   EPPROF_MAX_FRAMES: the hash omits frames further out. */
uint64_t epprof_hash_frames(const void* thread, const struct epprof_base* base, uint32_t* depth);

/* Stores the frames that sys._getframe would show, the innermost first, and returns their number.
   `truncated` is set if there are more of them. */
size_t epprof_copy_frames(const void* thread, struct epprof_frame out[EPPROF_MAX_FRAMES],
                          int* truncated);

/* Versions of addresses: the interpreter may free a code object and put another one at its address.
   `epprof_code_destroyed` changes every later hash that contains the address. */
uint32_t epprof_code_version(const void* code);
void epprof_code_destroyed(const void* code);
uint64_t epprof_destroyed_codes(void); /* so far */

/* A copy of a Python string: its characters have 1, 2 or 4 bytes. */
struct epprof_text {
  const void* data;
  size_t length; /* in characters */
  uint32_t kind;
};

struct epprof_code {
  struct epprof_text file, function;
  const unsigned char* line_table;
  size_t line_table_bytes;
  int32_t first_line;
};

/* Points to the data of a code object that a frame of this thread executes. */
struct epprof_code epprof_read_code(const void* code);

/* The line of the instruction at an offset; -1 if it has none. */
int32_t epprof_line_at(const unsigned char* table, size_t bytes, int32_t first_line,
                       int32_t offset);

#ifdef __cplusplus
}
#endif
