#include "stacks/cpython_layouts.h"

#include <string.h>

/* Each line names the header of CPython that declares the structs. In all versions, co_extra, a
   pointer, is between _co_firsttraceable and co_code_adaptive. */
static const struct epprof_frame_layout layouts[] = {
    {
        .minor = 11,
        /* Include/cpython/pystate.h: struct _ts, _PyCFrame */
        .thread_frame = 56, .has_cframe = 1, .cframe_frame = 8,
        .thread_next = 8, .thread_native_id = 160,
        /* Include/internal/pycore_frame.h: _PyInterpreterFrame, enum _frameowner */
        .frame_code = 32, .frame_previous = 48, .frame_instruction = 56, .frame_owner = 69,
        .frame_stack_top = 64, .frame_is_entry = 68,
        .owner_generator = 1, .owner_interpreter = 255, .code_tag_mask = 0,
        /* Include/cpython/code.h: _PyCode_DEF */
        .code_file = 112, .code_qualname = 128, .code_line_table = 136, .code_first_line = 72,
        .code_first_traceable = 168, .code_instructions = 184,
        /* Include/cpython/unicodeobject.h, bytesobject.h */
        .text_length = 16, .text_state = 32, .kind_shift = 2, .ascii_size = 48, .compact_size = 72,
        .bytes_size = 16, .bytes_data = 32,
    },
    {
        .minor = 12,
        /* Include/cpython/pystate.h */
        .thread_frame = 56, .has_cframe = 1, .cframe_frame = 0,
        .thread_next = 8, .thread_native_id = 144,
        /* Include/internal/pycore_frame.h */
        .frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 70,
        .frame_stack_top = 64, .frame_is_entry = 0,
        .owner_generator = 1, .owner_interpreter = 3, .code_tag_mask = 0,
        /* Include/cpython/code.h */
        .code_file = 112, .code_qualname = 128, .code_line_table = 136, .code_first_line = 68,
        .code_first_traceable = 176, .code_instructions = 192,
        /* Include/cpython/unicodeobject.h, bytesobject.h */
        .text_length = 16, .text_state = 32, .kind_shift = 2, .ascii_size = 40, .compact_size = 56,
        .bytes_size = 16, .bytes_data = 32,
    },
    {
        .minor = 13,
        /* Include/cpython/pystate.h; from here on also in _Py_DebugOffsets */
        .thread_frame = 72, .has_cframe = 0, .cframe_frame = 0,
        .thread_next = 8, .thread_native_id = 160,
        /* Include/internal/pycore_frame.h */
        .frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 70,
        .frame_stack_top = 64, .frame_is_entry = 0,
        .owner_generator = 1, .owner_interpreter = 3, .code_tag_mask = 0,
        /* Include/cpython/code.h */
        .code_file = 112, .code_qualname = 128, .code_line_table = 136, .code_first_line = 68,
        .code_first_traceable = 184, .code_instructions = 200,
        /* Include/cpython/unicodeobject.h, bytesobject.h */
        .text_length = 16, .text_state = 32, .kind_shift = 2, .ascii_size = 40, .compact_size = 56,
        .bytes_size = 16, .bytes_data = 32,
        /* Include/internal/pycore_runtime.h: _Py_DebugOffsets */
        .told = {.thread = 19, .frame = 28, .code = 34, .bytes = 64, .text = 67},
    },
    {
        .minor = 14,
        /* Include/cpython/pystate.h */
        .thread_frame = 72, .has_cframe = 0, .cframe_frame = 0,
        .thread_next = 8, .thread_native_id = 160,
        /* Include/internal/pycore_interpframe_structs.h, pycore_stackref.h */
        .frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 74,
        .owner_generator = 1, .owner_interpreter = 3, .code_tag_mask = 3,
        /* Include/cpython/code.h */
        .code_file = 112, .code_qualname = 128, .code_line_table = 136, .code_first_line = 68,
        .code_first_traceable = 192, .code_instructions = 208,
        /* Include/cpython/unicodeobject.h, bytesobject.h */
        .text_length = 16, .text_state = 32, .kind_shift = 2, .ascii_size = 40, .compact_size = 56,
        .bytes_size = 16, .bytes_data = 32,
        /* Include/internal/pycore_debug_offsets.h */
        .told = {.thread = 22, .frame = 31, .code = 39, .bytes = 74, .text = 77},
    },
    {
        .minor = 15,
        /* Include/cpython/pystate.h */
        .thread_frame = 72, .has_cframe = 0, .cframe_frame = 0,
        /* Include/internal/pycore_interpframe_structs.h, pycore_stackref.h */
        .frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 74,
        .owner_generator = 1, .owner_interpreter = 3, .code_tag_mask = 3,
        /* Include/cpython/code.h */
        .code_file = 112, .code_qualname = 128, .code_line_table = 136, .code_first_line = 68,
        .code_first_traceable = 192, .code_instructions = 208,
        /* Include/cpython/unicodeobject.h, bytesobject.h */
        .text_length = 16, .text_state = 32, .kind_shift = 2, .ascii_size = 40, .compact_size = 56,
        .bytes_size = 16, .bytes_data = 32,
        /* Include/internal/pycore_debug_offsets.h */
        .told = {.thread = 22, .frame = 39, .code = 47, .bytes = 86, .text = 89},
    },
};

const struct epprof_frame_layout* epprof_frame_layout_of(int minor) {
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
    if (layouts[i].minor == minor) return &layouts[i];
  }
  return NULL;
}

int epprof_layout_is_confirmed(const struct epprof_frame_layout* l, const void* runtime) {
  if (l->minor < 13) return 1; /* these have no offsets */
  const uint64_t* numbers = runtime;
  if (!numbers || memcmp(numbers, "xdebugpy", 8) != 0) return 0;
  /* The version, and whether the interpreter is free-threaded. */
  if (numbers[1] >> 16 != (uint64_t)(3 << 8 | l->minor) || numbers[2]) return 0;
  const uint64_t *thread = numbers + l->told.thread, *frame = numbers + l->told.frame;
  const uint64_t *code = numbers + l->told.code, *bytes = numbers + l->told.bytes;
  const uint64_t* text = numbers + l->told.text;
  if (l->thread_native_id && (thread[2] != l->thread_next || thread[6] != l->thread_native_id)) {
    return 0;
  }
  return thread[4] == l->thread_frame && frame[1] == l->frame_previous &&
         frame[2] == l->frame_code && frame[3] == l->frame_instruction &&
         frame[5] == l->frame_owner && code[1] == l->code_file && code[3] == l->code_qualname &&
         code[4] == l->code_line_table && code[5] == l->code_first_line &&
         code[9] == l->code_instructions && bytes[1] == l->bytes_size &&
         bytes[2] == l->bytes_data && text[1] == l->text_state && text[2] == l->text_length &&
         text[3] == l->ascii_size;
}
