#include "stacks/layouts.h"

#include <string.h>

/* Each line names the header of CPython that declares the structs. In all versions, co_extra, a
   pointer, is between _co_firsttraceable and co_code_adaptive. */
static const struct epprof_frame_layout layouts[] = {
    {
        .minor = 11,
        /* Include/cpython/pystate.h: struct _ts, _PyCFrame */
        .thread_frame = 56, .has_cframe = 1, .cframe_frame = 8,
        /* Include/internal/pycore_frame.h: _PyInterpreterFrame, enum _frameowner */
        .frame_code = 32, .frame_previous = 48, .frame_instruction = 56, .frame_owner = 69,
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
        /* Include/internal/pycore_frame.h */
        .frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 70,
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
        /* Include/internal/pycore_frame.h */
        .frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 70,
        .owner_generator = 1, .owner_interpreter = 3, .code_tag_mask = 0,
        /* Include/cpython/code.h */
        .code_file = 112, .code_qualname = 128, .code_line_table = 136, .code_first_line = 68,
        .code_first_traceable = 184, .code_instructions = 200,
        /* Include/cpython/unicodeobject.h, bytesobject.h */
        .text_length = 16, .text_state = 32, .kind_shift = 2, .ascii_size = 40, .compact_size = 56,
        .bytes_size = 16, .bytes_data = 32,
    },
};

const struct epprof_frame_layout* epprof_frame_layout_of(int minor) {
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
    if (layouts[i].minor == minor) return &layouts[i];
  }
  return NULL;
}

/* The beginning of _Py_DebugOffsets of 3.13, as in Include/internal/pycore_runtime.h. */
struct debug_offsets_13 {
  char cookie[8];
  uint64_t version, free_threaded;
  uint64_t runtime_size, runtime_finalizing, runtime_interpreters_head;
  uint64_t interpreter[13];
  uint64_t thread_size, thread_prev, thread_next, thread_interp, thread_current_frame;
  uint64_t thread_id, thread_native_id, thread_datastack_chunk, thread_status;
  uint64_t frame_size, frame_previous, frame_executable, frame_instr_ptr, frame_localsplus;
  uint64_t frame_owner;
  uint64_t code_size, code_filename, code_name, code_qualname, code_linetable, code_firstlineno;
  uint64_t code_argcount, code_localsplusnames, code_localspluskinds, code_adaptive;
  uint64_t object_size, object_type;
  uint64_t type_object[4], tuple_object[3], list_object[3], dict_object[3], float_object[2];
  uint64_t long_object[3];
  uint64_t bytes_object_size, bytes_size, bytes_data;
  uint64_t text_size, text_state, text_length, ascii_size;
};

int epprof_layout_is_confirmed(const struct epprof_frame_layout* l, const void* runtime) {
  if (l->minor < 13) return 1; /* these tell nothing */
  const struct debug_offsets_13* d = runtime;
  if (!d || memcmp(d->cookie, "xdebugpy", sizeof d->cookie) != 0) return 0;
  return d->version >> 16 == (uint64_t)(3 << 8 | l->minor) && !d->free_threaded &&
         d->thread_current_frame == l->thread_frame && d->frame_executable == l->frame_code &&
         d->frame_previous == l->frame_previous && d->frame_instr_ptr == l->frame_instruction &&
         d->frame_owner == l->frame_owner && d->code_filename == l->code_file &&
         d->code_qualname == l->code_qualname && d->code_linetable == l->code_line_table &&
         d->code_firstlineno == l->code_first_line && d->code_adaptive == l->code_instructions &&
         d->bytes_size == l->bytes_size && d->bytes_data == l->bytes_data &&
         d->text_state == l->text_state && d->text_length == l->text_length &&
         d->ascii_size == l->ascii_size;
}
