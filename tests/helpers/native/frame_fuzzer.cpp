// Reads "frames" that another thread overwrites with addresses of all kinds.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>
#include <random>
#include <thread>

#include "samples/frame_reader.h"

using namespace epprof;

int main(int, char** arguments) {
  const epprof_frame_layout& layout = *epprof_frame_layout_of(atoi(arguments[1]));
  size_t bytes = 1 << 18;
  char* arena = static_cast<char*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  munmap(arena + bytes / 2, 1 << 13);  // a hole
  memset(arena, 0, 1 << 12);
  char* thread = arena;
  uint64_t id = 7;
  memcpy(thread + layout.thread_native_id, &id, sizeof id);
  uintptr_t cframe = uintptr_t(arena) + 512;
  std::atomic<bool> ends{false}, pauses{false};
  std::atomic<size_t> rounds{0};

  auto address = [&](std::mt19937_64& random) -> uintptr_t {
    uintptr_t inside = uintptr_t(arena) + 4096 + random() % (bytes - 4096);
    switch (random() % 64) {
      case 0: return random();
      case 1: return UINTPTR_MAX - random() % 200;
      case 2: return random() % 200;
      case 3: return uintptr_t(arena) + bytes - random() % 200;
      case 4: case 5: case 6: case 7: case 8: return 0;
      default: return (inside & ~uintptr_t(7)) % 3 ? inside & ~uintptr_t(127) : inside;
    }
  };
  std::thread writer([&] {
    std::mt19937_64 random(1);
    while (!ends) {
      if (pauses) continue;
      rounds++;
      uintptr_t current = address(random);
      uintptr_t to = layout.has_cframe ? (random() % 16 ? cframe : address(random)) : current;
      memcpy(thread + layout.thread_frame, &to, sizeof to);
      if (layout.has_cframe) {
        memcpy(reinterpret_cast<char*>(cframe) + layout.cframe_frame, &current, sizeof current);
      }
      for (int i = 0; i < 40; i++) {
        size_t at = 4096 + random() % (bytes - 4096 - 80);
        if (at + 80 > bytes / 2 && at < bytes / 2 + (1 << 13)) continue;
        uintptr_t frame[10];
        for (auto& word : frame) word = address(random);
        memcpy(arena + (random() % 3 ? at & ~size_t(127) : at), frame, sizeof frame);
      }
    }
  });
  MemoryReader memory;
  if (!memory.prepare()) return 1;
  size_t readings[5] = {}, frames = 0;
  for (int i = 0; i < atoi(arguments[2]); i++) {
    pauses = false;
    for (size_t before = rounds; rounds < before + 2;) std::this_thread::yield();
    pauses = i % 4 == 0;
    FrameReader reader(memory, layout, uintptr_t(thread), id);
    for (int j = 0; j < 20; j++) {
      Reading reading = reader.read();
      readings[int(reading)]++;
      bool has_frames = reading == Reading::exact || reading == Reading::outer;
      if (has_frames) frames += reader.frames().size();
    }
  }
  ends = true;
  writer.join();
  printf("%zu %zu\n", readings[int(Reading::exact)] + readings[int(Reading::outer)], frames);
}
