/* Uses hotpack's C interface as an installed library offers it. Exit code 0 if all is as the header says. */
#include <hotpack.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  hotpack_stats stats;
  memset(&stats, 0, sizeof(stats));
  if (hotpack_version() != HOTPACK_VERSION) {
    fprintf(stderr, "the library is version %d, the header %d\n", hotpack_version(), HOTPACK_VERSION);
    return 1;
  }
  hotpack_step();
  hotpack_interrupt();
  hotpack_resume();
  if (hotpack_get_stats(&stats, sizeof(stats)) != -1) {
    fprintf(stderr, "there are figures before there is an arena\n");
    return 1;
  }
  if (hotpack_wait_plan(0) != 1) {
    fprintf(stderr, "planning is under way before there is an arena\n");
    return 1;
  }
  return 0;
}
