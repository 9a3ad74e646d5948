/* The places of a thread's frames in CPython, by minor version. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Offsets in bytes. All releases of a minor version have the same ones, on every 64-bit system. */
struct epprof_frame_layout {
  uint16_t minor; /* of Python 3 */

  /* PyThreadState: the field that leads to the current frame. If `has_cframe`, it holds a pointer
     to a struct, in which the frame is at `cframe_frame`. */
  uint16_t thread_frame;
  uint16_t cframe_frame;
  uint8_t has_cframe;
  uint16_t thread_next;
  uint16_t thread_native_id; /* the system's id of the thread; 0: not known */

  /* _PyInterpreterFrame */
  uint16_t frame_code;
  uint16_t frame_previous;
  uint16_t frame_instruction;
  uint16_t frame_owner; /* a byte */
  /* int: negative while the frame runs and calls no Python function; 0: not known */
  uint16_t frame_stack_top;
  uint16_t frame_is_entry;  /* a byte: C code made the call; 0: a frame without code is between */
  uint8_t owner_generator;
  uint8_t owner_interpreter; /* it and higher ones have no Python code; 255: none */
  uint8_t code_tag_mask;     /* bits of the reference to the code that are not part of its address */

  /* PyCodeObject */
  uint16_t code_file;
  uint16_t code_qualname;
  uint16_t code_line_table;
  uint16_t code_first_line;      /* int */
  uint16_t code_first_traceable; /* int, in instructions of two bytes */
  uint16_t code_instructions;

  /* PyASCIIObject, PyCompactUnicodeObject, PyBytesObject */
  uint16_t text_length;
  uint16_t text_state; /* 32 bits */
  uint8_t kind_shift;  /* three bits, followed by `compact` and `ascii` */
  uint16_t ascii_size;
  uint16_t compact_size;
  uint16_t bytes_size;
  uint16_t bytes_data;

  /* _Py_DebugOffsets of 3.13 and newer, an array of 64-bit numbers: where the offsets of each of
     these structs begin. */
  struct {
    uint8_t thread, frame, code, bytes, text;
  } told;
};

/* The layout of Python 3.`minor`; null if it is not known. */
const struct epprof_frame_layout* epprof_frame_layout_of(int minor);

/* Compares a layout with the offsets that Python 3.13 and newer publish. `runtime` is the address
   of _PyRuntime. Returns 0 if they differ, or if the interpreter is free-threaded. */
int epprof_layout_is_confirmed(const struct epprof_frame_layout* layout, const void* runtime);

#ifdef __cplusplus
}
#endif
