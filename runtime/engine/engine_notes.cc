// Notes of collectors: writes them into the recording, under the engine's lock.
#include "runtime/engine/engine_impl.h"

namespace hotpack {

uint64_t Engine::Impl::NoteLaunch(const LaunchNote& note, bool only_if_named) {
  if (!recording()) return kNoLaunch;
  EngineLock lock(mutex_);
  return recording_.AddLaunch(note, only_if_named);
}

void Engine::Impl::NoteWork(uint64_t launch, std::string_view name, uint64_t start_ns, uint64_t end_ns) {
  if (!recording()) return;
  EngineLock lock(mutex_);
  recording_.AddWork(launch, name, start_ns, end_ns);
}

void Engine::Impl::NoteRange(RangeKind kind, uint64_t id, std::string_view name, uint64_t time_ns, uint16_t thread) {
  if (!recording()) return;
  EngineLock lock(mutex_);
  recording_.AddRange(kind, id, name, time_ns, thread);
}

void Engine::Impl::NoteMemory(const DriverMemory& memory, std::string_view name) {
  if (!recording()) return;
  EngineLock lock(mutex_);
  recording_.AddMemory(memory, name);
}

uint64_t Engine::Impl::RecordedEvents() {
  if (!recording()) return 0;
  EngineLock lock(mutex_);
  return recording_.Events();
}

bool Engine::IsRecording() const { return impl_->recording(); }
uint64_t Engine::NoteLaunch(const LaunchNote& note, bool only_if_named) try {
  return impl_->NoteLaunch(note, only_if_named);
} catch (...) {
  return kNoLaunch;
}
void Engine::NoteWork(uint64_t launch, std::string_view name, uint64_t start_ns, uint64_t end_ns) try {
  impl_->NoteWork(launch, name, start_ns, end_ns);
} catch (...) {
}
void Engine::NoteRange(RangeKind kind, uint64_t id, std::string_view name, uint64_t time_ns, uint16_t thread) try {
  impl_->NoteRange(kind, id, name, time_ns, thread);
} catch (...) {
}
void Engine::NoteMemory(const DriverMemory& memory, std::string_view name) try {
  impl_->NoteMemory(memory, name);
} catch (...) {
}
uint64_t Engine::RecordedEvents() { return impl_->RecordedEvents(); }

}  // namespace hotpack
