// The cell's thread at the launches of another one, by planted clocks.
#include "core/cell_use.h"

#include <cstdio>
#include <cstdlib>

using namespace epprof;

namespace {

void check(const char* at, CellUse::Finding found, CellUse::Finding expected) {
  if (found == expected) return;
  fprintf(stderr, "%s: %d instead of %d\n", at, found, expected);
  exit(1);
}

}  // namespace

int main() {
  constexpr int64_t us = 1000;
  {
    CellUse use;  // it falls asleep after the first launch, and uses 20 us for that
    check("first", use.at_launch(1, 7, 500 * us, 1000 * us), CellUse::unknown);
    check("falling asleep", use.at_launch(1, 7, 520 * us, 1030 * us), CellUse::unknown);
    check("still", use.at_launch(1, 7, 520 * us, 1100 * us), CellUse::unknown);
    check("asleep", use.at_launch(1, 7, 520 * us, 1160 * us), CellUse::waits);
    check("asleep on", use.at_launch(1, 7, 520 * us, 1170 * us), CellUse::waits);
    check("another op", use.at_launch(1, 8, 530 * us, 1200 * us), CellUse::unknown);
  }
  {
    CellUse use;  // it runs all the time: a launch each 10 us shows it after 50 us
    int runs = 0;
    for (int64_t now = 0; now <= 600 * us; now += 10 * us) {
      CellUse::Finding found = use.at_launch(1, 7, now, now);
      if (now) check("not waiting", found, found == CellUse::runs ? found : CellUse::unknown);
      runs += found == CellUse::runs;
    }
    if (runs != 10) check("runs", CellUse::unknown, CellUse::runs);
  }
  {
    CellUse use;
    use.at_launch(1, 7, 0, 0);
    check("another thread", use.at_launch(2, 7, 0, 1000 * us), CellUse::unknown);
    check("it ended", use.at_launch(2, 7, -1, 2000 * us), CellUse::unknown);
  }
  return 0;
}
