// The reader of a process's figures (runtime/persist/stats_file.h) accepts or rejects any bytes. An accepted file is
// complete, and has the figures of at most as many arenas as it has slots.
#include <cstring>
#include <string>

#include "runtime/persist/stats_file.h"
#include "tests/fuzz/fuzz.h"

// corpus/make_seeds.py writes files with slots of this length.
static_assert(sizeof(hotpack::StatsSlot) == 880 && hotpack::kStatsVersion == 4,
              "change corpus/make_seeds.py, and run it");

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hotpack;
  const fuzz::MemoryFile file(data, size);
  ProcessStats process;
  if (!ReadStatsFile(file.path(), &process)) return 0;
  fuzz::Require(size >= sizeof(StatsFileHeader) + kStatsSlots * sizeof(StatsSlot), "only a whole file is taken");
  fuzz::Require(memcmp(data, &kStatsMagic, sizeof(kStatsMagic)) == 0, "only a finished file is taken");
  fuzz::Require(process.program.size() <= sizeof(StatsFileHeader::program), "a name is not longer than its field");
  fuzz::Require(process.program.find('\0') == std::string::npos, "a name ends at its first NUL");
  if (process.arenas == 0) fuzz::Require(process.stats.requests == 0, "without an arena there are no requests");
  return 0;
}
