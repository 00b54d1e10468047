#include "shared_data.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

namespace hotpack {
namespace {

struct RecordedBlock {
  Bytes size = 0;
  int64_t step = 0;  // ordinal of the mark before it
  Clock allocated = 0;
  int64_t released_step = -1;
  Clock released = 0;  // within its step
};

struct Recording {
  std::vector<RecordedBlock> blocks;
  std::vector<Clock> lengths;  // events by step
};

std::optional<Recording> ReadRecording(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  Recording recording;
  std::map<std::string, size_t> live;
  std::string line;
  std::getline(file, line);  // column names
  while (std::getline(file, line)) {
    const size_t first = line.find(',');
    const size_t second = line.find(',', first + 1);
    const std::string event = line.substr(0, first);
    const std::string id = line.substr(first + 1, second - first - 1);
    if (event == "mark") {
      if (id == "step") recording.lengths.push_back(0);
      if (id == "end") break;
      continue;
    }
    if (recording.lengths.empty()) recording.lengths.push_back(0);
    const auto step = static_cast<int64_t>(recording.lengths.size()) - 1;
    const Clock now = recording.lengths.back()++;
    if (event == "alloc") {
      live[id] = recording.blocks.size();
      const Bytes size = (std::stoll(line.substr(second + 1)) + 511) / 512 * 512;
      recording.blocks.push_back({size, step, now, -1, 0});
    } else if (const auto found = live.find(id); found != live.end()) {
      recording.blocks[found->second].released_step = step;
      recording.blocks[found->second].released = now;
      live.erase(found);
    }
  }
  return recording;
}

// [begin, end) on a straight axis, wound onto a cycle of `length` ticks; end - begin ≤ length.
Block Wound(Bytes size, Clock begin, Clock end, Clock length) {
  Block block;
  block.size = size;
  if (end <= length) {
    block.residency = {{begin, end}};
  } else if (end - length >= begin) {
    block.residency = {{0, length}};
  } else {
    block.residency = {{0, end - length}, {begin, length}};
  }
  return block;
}

}  // namespace

std::string SharedFolder(const std::string& folder) {
  const char* const set = std::getenv("HOTPACK_SHARED");
  const std::filesystem::path root = set != nullptr ? set : HOTPACK_SOURCE_DIR "/../shared";
  std::error_code error;
  return std::filesystem::is_directory(root / folder, error) ? (root / folder).string() : "";
}

std::vector<std::string> CsvFilesIn(const std::string& folder) {
  std::vector<std::string> paths;
  if (folder.empty()) return paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".csv") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string FileStem(const std::string& path) { return std::filesystem::path(path).stem().string(); }

std::optional<Instance> CyclicInstanceOfTrace(const std::string& path) {
  const std::optional<Recording> recording = ReadRecording(path);
  if (!recording || recording->lengths.size() < 2) return std::nullopt;
  const Clock period = recording->lengths[1];
  // Ends on a straight axis that counts `period` ticks a step, so that steps of other lengths do not matter.
  const auto end_of = [&](const RecordedBlock& block) {
    return (block.released_step - 1) * period + std::min(block.released, period);
  };
  Clock turns = 1;
  for (const RecordedBlock& block : recording->blocks) {
    if (block.step != 1 || block.released_step < 0) continue;
    turns = std::max(turns, (end_of(block) - block.allocated + period - 1) / period);
  }
  Instance instance;
  for (Clock turn = 0; turn < turns; ++turn) {
    for (const RecordedBlock& block : recording->blocks) {
      if (block.step != 1 || block.released_step < 0) continue;
      const Clock begin = turn * period + block.allocated;
      instance.blocks.push_back(
          Wound(block.size, begin, std::max(begin + 1, turn * period + end_of(block)), turns * period));
    }
  }
  return instance;
}

std::optional<Instance> WholeTrace(const std::string& path) {
  const std::optional<Recording> recording = ReadRecording(path);
  if (!recording) return std::nullopt;
  std::vector<Clock> starts{0};
  for (Clock length : recording->lengths) starts.push_back(starts.back() + length);
  Instance instance;
  for (const RecordedBlock& recorded : recording->blocks) {
    const Clock end = recorded.released_step < 0 ? starts.back() : starts[recorded.released_step] + recorded.released;
    Block block;
    block.size = recorded.size;
    block.residency = {{starts[recorded.step] + recorded.allocated, end}};
    instance.blocks.push_back(block);
  }
  return instance;
}

}  // namespace hotpack
