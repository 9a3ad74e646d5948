#include "stacks/walker.h"

#include <stdatomic.h>

static struct epprof_frame_layout layout;

void epprof_set_frame_layout(const struct epprof_frame_layout* new_layout) { layout = *new_layout; }

const struct epprof_frame_layout* epprof_current_layout(void) { return &layout; }

static inline const void* pointer_at(const void* object, size_t offset) {
  return *(const void* const*)((const char*)object + offset);
}

static inline int32_t int_at(const void* object, size_t offset) {
  return *(const int32_t*)((const char*)object + offset);
}

static inline const void* code_of(const void* frame) {
  uintptr_t code = (uintptr_t)pointer_at(frame, layout.frame_code);
  return (const void*)(code & ~(uintptr_t)layout.code_tag_mask);
}

static inline const void* current_frame(const void* thread) {
  const void* at = pointer_at(thread, layout.thread_frame);
  if (layout.has_cframe && at) at = pointer_at(at, layout.cframe_frame);
  return at;
}

/* Versions by a hash of the address. If two addresses share one, the stacks of both are copied
   again when either is freed. */
enum { VERSIONS = 4096 };
static _Atomic uint32_t versions[VERSIONS];
static _Atomic uint64_t destroyed;

static inline _Atomic uint32_t* version_of(const void* code) {
  uintptr_t address = (uintptr_t)code;
  return &versions[(address >> 4 ^ address >> 16) % VERSIONS];
}

/* Relaxed: the old code object at the address was freed before the new one was made and its frame
   was entered. */
uint32_t epprof_code_version(const void* code) {
  return atomic_load_explicit(version_of(code), memory_order_relaxed);
}

void epprof_code_destroyed(const void* code) {
  atomic_fetch_add_explicit(version_of(code), 1, memory_order_relaxed);
  atomic_fetch_add(&destroyed, 1); /* before the memory is reused */
}

uint64_t epprof_destroyed_codes(void) { return atomic_load(&destroyed); }

static inline uint64_t append(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

static uint64_t hash_from(const void* frame, const struct epprof_base* base, uint32_t* depth) {
  uint64_t hash = 0;
  uint32_t n = 0;
  /* These include frames that sys._getframe does not show; the copy leaves them out. */
  for (; frame && n < EPPROF_MAX_FRAMES; n++) {
    /* The address of the instruction lies in the code object. */
    const void* at = pointer_at(frame, layout.frame_instruction);
    if (frame == base->frame && at == base->instruction) {
      hash = append(hash, base->hash);
      n += base->depth;
      break;
    }
    uint64_t version = epprof_code_version(code_of(frame));
    hash = append(hash, (uint64_t)at ^ version * 0xD6E8FEB86659FD93u);
    frame = pointer_at(frame, layout.frame_previous);
  }
  *depth = n;
  return n && !hash ? 1 : hash;
}

uint64_t epprof_hash_frames(const void* thread, const struct epprof_base* base, uint32_t* depth) {
  return hash_from(current_frame(thread), base, depth);
}

static int is_shown(const void* frame) {
  unsigned char owner = *((const unsigned char*)frame + layout.frame_owner);
  if (owner >= layout.owner_interpreter) return 0;
  if (owner == layout.owner_generator) return 1;
  const char* code = code_of(frame);
  const char* instructions = code + layout.code_instructions;
  return (const char*)pointer_at(frame, layout.frame_instruction) >=
         instructions + 2 * int_at(code, layout.code_first_traceable);
}

static int is_generator(const void* frame) {
  unsigned char owner = *((const unsigned char*)frame + layout.frame_owner);
  return owner == layout.owner_generator;
}

static const void* shown_from(const void* frame) {
  while (frame && !is_shown(frame)) frame = pointer_at(frame, layout.frame_previous);
  return frame;
}

struct epprof_base epprof_find_base(const void* thread, uint32_t shown) {
  const struct epprof_base none = {NULL, NULL, 0, 0};
  const void* frame = shown_from(current_frame(thread));
  while (frame && shown--) frame = shown_from(pointer_at(frame, layout.frame_previous));
  if (!frame || is_generator(frame)) return none;
  const void* caller = shown_from(pointer_at(frame, layout.frame_previous));
  if (!caller) return none;
  struct epprof_base base = {caller, pointer_at(caller, layout.frame_instruction), 0, 0};
  base.hash = hash_from(caller, &none, &base.depth);
  return base;
}

size_t epprof_copy_frames(const void* thread, struct epprof_frame out[EPPROF_MAX_FRAMES],
                          int* truncated) {
  size_t n = 0;
  const void* frame = current_frame(thread);
  for (uint32_t seen = 0; frame && seen < EPPROF_MAX_FRAMES; seen++) {
    if (is_shown(frame)) {
      const char* code = code_of(frame);
      const char* instruction = pointer_at(frame, layout.frame_instruction);
      out[n].code = code;
      out[n++].offset = (int32_t)(instruction - code - layout.code_instructions);
    }
    frame = pointer_at(frame, layout.frame_previous);
  }
  *truncated = frame != NULL;
  return n;
}

static struct epprof_text read_text(const void* object) {
  struct epprof_text text = {"", 0, 1};
  if (!object) return text;
  uint32_t state = *(const uint32_t*)((const char*)object + layout.text_state);
  uint32_t bits = state >> layout.kind_shift;
  uint32_t kind = bits & 7;
  int is_compact = bits >> 3 & 1, is_ascii = bits >> 4 & 1;
  if (kind != 1 && kind != 2 && kind != 4) return text;
  const char* data = (const char*)object + (is_ascii ? layout.ascii_size : layout.compact_size);
  if (!is_compact) data = pointer_at(object, layout.compact_size); /* of a subclass of str */
  if (!data) return text;
  text.data = data;
  text.length = (size_t)pointer_at(object, layout.text_length);
  text.kind = kind;
  return text;
}

struct epprof_code epprof_read_code(const void* code) {
  struct epprof_code read = {
      .file = read_text(pointer_at(code, layout.code_file)),
      .function = read_text(pointer_at(code, layout.code_qualname)),
      .first_line = int_at(code, layout.code_first_line),
  };
  const char* table = pointer_at(code, layout.code_line_table);
  if (table) {
    read.line_table = (const unsigned char*)table + layout.bytes_data;
    read.line_table_bytes = (size_t)pointer_at(table, layout.bytes_size);
  }
  return read;
}
