// The function that the preload calls when HOTPACK_CUPTI is set and a recording has begun.
#include <pthread.h>

#include <cstdlib>

#include "preload/cupti/collector.h"

namespace {

// Never destroyed: CUPTI may call back until the end of the process.
constinit hotpack::cupti::Collector collector;

void Flush() { collector.Flush(); }
void End() { collector.End(); }
void AfterForkInChild() { collector.AbandonAfterFork(); }

}  // namespace

// The C++ name differs, because the header has a type with the exported name.
extern "C" __attribute__((visibility("default"))) int StartCupti(const hotpack_collector_host* host) __asm__(
    HOTPACK_COLLECTOR_START);

int StartCupti(const hotpack_collector_host* host) {
  if (host == nullptr || host->version != HOTPACK_COLLECTOR_HOST_VERSION ||
      host->size < sizeof(hotpack_collector_host)) {
    return -1;
  }
  pthread_atfork(nullptr, nullptr, AfterForkInChild);
  if (!collector.Start(host)) return -1;
  host->on_close(Flush);
  host->on_end(End);
  // Runs before the driver's handlers, which were registered earlier. The host's end comes after them.
  atexit(End);
  return 0;
}
