// The cell's thread at the launches of another one, by planted clocks.
#include "core/cell_thread_wait.h"

#include <cstdio>
#include <cstdlib>

using namespace epprof;

namespace {

void check(const char* at, CellThreadWait::Finding found, CellThreadWait::Finding expected) {
  if (found == expected) return;
  fprintf(stderr, "%s: %d instead of %d\n", at, found, expected);
  exit(1);
}

}  // namespace

int main() {
  constexpr int64_t us = 1000;
  {
    CellThreadWait use;  // it falls asleep after the first launch, and uses 20 us for that
    check("first", use.at_launch(1, 7, 500 * us, 1000 * us), CellThreadWait::unknown);
    check("falling asleep", use.at_launch(1, 7, 520 * us, 1030 * us), CellThreadWait::unknown);
    check("still", use.at_launch(1, 7, 520 * us, 1100 * us), CellThreadWait::unknown);
    check("asleep", use.at_launch(1, 7, 520 * us, 1160 * us), CellThreadWait::waits);
    check("asleep on", use.at_launch(1, 7, 520 * us, 1170 * us), CellThreadWait::waits);
    check("another op", use.at_launch(1, 8, 530 * us, 1200 * us), CellThreadWait::unknown);
  }
  {
    CellThreadWait use;  // it runs all the time: a launch each 10 us shows it after 50 us
    int runs = 0;
    for (int64_t now = 0; now <= 600 * us; now += 10 * us) {
      CellThreadWait::Finding found = use.at_launch(1, 7, now, now);
      if (now) check("not waiting", found, found == CellThreadWait::runs ? found : CellThreadWait::unknown);
      runs += found == CellThreadWait::runs;
    }
    if (runs != 10) check("runs", CellThreadWait::unknown, CellThreadWait::runs);
  }
  {
    CellThreadWait use;
    use.at_launch(1, 7, 0, 0);
    check("another thread", use.at_launch(2, 7, 0, 1000 * us), CellThreadWait::unknown);
    check("it ended", use.at_launch(2, 7, -1, 2000 * us), CellThreadWait::unknown);
  }
  return 0;
}
