#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "packer/csv.h"

namespace hotpack {
namespace {

// Intervals between the residency intervals.
std::string GapsOf(const Block& block) {
  std::string gaps;
  for (size_t i = 1; i < block.residency.size(); ++i) {
    const Clock begin = block.residency[i - 1].end;
    const Clock end = block.residency[i].begin;
    if (begin < end) absl::StrAppend(&gaps, gaps.empty() ? "" : " ", begin, "-", end);
  }
  return gaps;
}

absl::Status WriteFailure(const std::string& path) {
  return absl::PermissionDeniedError(absl::StrCat(path, ": cannot be written: ", std::strerror(errno)));
}

absl::Status WriteTo(const std::string& path, const std::string& reported_path, absl::string_view text) {
  FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return WriteFailure(reported_path);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
  const int write_error = errno;
  const bool closed = std::fclose(file) == 0;
  if (written && closed) return absl::OkStatus();
  if (!written) errno = write_error;
  return WriteFailure(reported_path);
}

}  // namespace

std::string FormatCsv(const Instance& instance, const std::vector<std::string>& ids, const Placement* placement) {
  const auto& blocks = instance.blocks;
  const bool alignments = std::any_of(blocks.begin(), blocks.end(), [](const Block& b) { return b.alignment != 1; });
  const bool gaps = std::any_of(blocks.begin(), blocks.end(), [](const Block& b) { return !GapsOf(b).empty(); });
  std::string text = absl::StrCat("id,lower,upper,size", alignments ? ",alignment" : "", gaps ? ",gaps" : "",
                                  placement != nullptr ? ",offset" : "", "\n");
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = blocks[i];
    if (ids.empty()) {
      absl::StrAppend(&text, i);
    } else {
      absl::StrAppend(&text, ids[i]);
    }
    absl::StrAppend(&text, ",", block.residency.front().begin, ",", block.residency.back().end, ",", block.size);
    if (alignments) absl::StrAppend(&text, ",", block.alignment);
    if (gaps) absl::StrAppend(&text, ",", GapsOf(block));
    if (placement != nullptr) absl::StrAppend(&text, ",", placement->offsets[i]);
    text.push_back('\n');
  }
  return text;
}

absl::Status WriteTextFile(const std::string& path, absl::string_view text) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) return WriteTo(path, path, text);
  const std::string partial = path + ".partial";
  absl::Status result = WriteTo(partial, path, text);
  if (result.ok() && std::rename(partial.c_str(), path.c_str()) != 0) result = WriteFailure(path);
  if (!result.ok()) std::remove(partial.c_str());
  return result;
}

}  // namespace hotpack
