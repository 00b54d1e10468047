#include "tools/run/recording_end.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "profiler/trace_format.h"

namespace hotpack {

namespace {

namespace format = trace_format;

// Returns the state in the file's header; nothing if it has none.
std::optional<uint32_t> StateOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char header[format::kHeaderBytes];
  uint32_t state = format::kRecording;
  if (!file.read(header, sizeof(header))) return std::nullopt;
  std::memcpy(&state, header + format::kStateAt, sizeof(state));
  return state;
}

}  // namespace

std::string CutBecause(const std::string& path) {
  const std::optional<uint32_t> state = StateOf(path);
  if (!state) return "cannot be read";
  if (*state == format::kDiskFull) return "the disk was full, so it ends early";
  return *state == format::kLimitReached ? "it ends at the size limit (HOTPACK_TRACE_LIMIT_MB)" : "";
}

bool EndedByFullDisk(const std::string& path) { return StateOf(path) == std::optional<uint32_t>(format::kDiskFull); }

std::string MissingBecause(const std::string& path) {
  constexpr uintmax_t kRecorderStep = 1 << 20;  // what a recording claims at a time (profiler/trace_writer.cc)
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(std::filesystem::path(path).parent_path(), error);
  const bool full = !error && space.available < kRecorderStep;
  return std::string("the recording could not be written") + (full ? std::string(": ") + strerror(ENOSPC) : "");
}

}  // namespace hotpack
