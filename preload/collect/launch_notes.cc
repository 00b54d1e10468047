#include "preload/collect/launch_notes.h"

#include "preload/process/driver_access.h"
#include "preload/process/options.h"
#include "preload/streams/stream_order.h"
#include "runtime/persist/recording.h"

namespace hotpack {

bool NotesLaunches() {
  const Options& options = GetOptions();
  return options.enabled && options.launches && options.trace != nullptr && kHooksPresent;
}

void NoteLaunch(const char* name, CUstream stream, const uint64_t* words, size_t count) {
  if (Arenas().Size() == 0) return;
  LaunchNote note;
  note.name = name;
  note.words = words;
  note.word_count = count;
  note.stream = StreamOrdinal(stream);
  // A launch that names no block goes to the current context's recording.
  const CudaDriver* driver = Arenas().Size() > 1 ? Driver() : nullptr;
  ContextArena* home = driver != nullptr ? Arenas().Find(CurrentContext(*driver)) : nullptr;
  Arenas().ForEach([&](ContextArena* arena) {
    const bool only_if_named = driver != nullptr && arena != home;
    const uint64_t ordinal = arena->engine->NoteLaunch(note, only_if_named);
    if (ordinal != Engine::kNoLaunch && (noted_launch.engine == nullptr || arena == home))
      noted_launch = {arena->engine, ordinal};
  });
}

}  // namespace hotpack
