#include "tools/formats/snapshot_import.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "profiler/trace_file.h"
#include "tools/formats/snapshot_stacks.h"
#include "tools/formats/snapshot_words.h"
#include "tools/recording/recording_builder.h"

namespace hotpack {
namespace {

using namespace snapshot;

constexpr char kHowToRecord[] =
    "it has no history of allocations; record one with torch.cuda.memory._record_memory_history() at the start of the "
    "program";

// One device of one snapshot.
class Importer {
 public:
  Importer(const Pickle& pickle, std::string_view name) : pickle_(pickle), name_(name), stacks_(pickle) {}
  absl::StatusOr<ImportedSnapshot> Run(std::optional<int> device);

 private:
  absl::Status Fault(const std::string& reason) const {
    return absl::InvalidArgumentError(absl::StrCat(name_, ": ", reason));
  }
  std::optional<int64_t> Integer(const PickleValue& dict, Word key) const;
  std::optional<Word> WordOf(const PickleValue& dict, Word key) const;
  const std::vector<PickleValue>* List(const PickleValue& dict, Word key) const;
  absl::StatusOr<uint64_t> Size(const PickleValue& dict, Word key, std::string_view of) const;

  absl::Status ChooseDevice(std::optional<int> device);
  absl::Status AddEntry(const PickleValue& entry);
  absl::Status AddSegment(const PickleValue& segment);
  Notes TakeStacks();
  absl::Status AddLiveBlock(const PickleValue& block, uint64_t address, uint64_t stream);
  uint64_t TimeOf(const PickleValue& entry) const;

  const Pickle& pickle_;
  const std::string name_;
  const std::vector<PickleValue>* history_ = nullptr;
  bool has_requests_ = false;  // whether any entry is a release request
  int64_t began_us_ = 0;
  RecordingBuilder builder_;
  SnapshotStacks stacks_;
  std::vector<BlockStack> of_live_;         // id: among the blocks live before the history
  std::vector<BlockStack> of_allocations_;  // id: the allocation's ordinal
  ImportedSnapshot result_;
};

std::optional<int64_t> Importer::Integer(const PickleValue& dict, Word key) const {
  if (dict.kind != PickleKind::kDict) return std::nullopt;
  const PickleValue* value = pickle_.Find(dict, key);
  if (value == nullptr || value->kind != PickleKind::kInteger) return std::nullopt;
  return value->number;
}

std::optional<Word> Importer::WordOf(const PickleValue& dict, Word key) const {
  if (dict.kind != PickleKind::kDict) return std::nullopt;
  const PickleValue* value = pickle_.Find(dict, key);
  if (value == nullptr || value->kind != PickleKind::kWord) return std::nullopt;
  return static_cast<Word>(value->number);
}

const std::vector<PickleValue>* Importer::List(const PickleValue& dict, Word key) const {
  if (dict.kind != PickleKind::kDict) return nullptr;
  const PickleValue* value = pickle_.Find(dict, key);
  if (value == nullptr || value->kind != PickleKind::kList) return nullptr;
  return &pickle_.lists[static_cast<size_t>(value->number)];
}

absl::StatusOr<uint64_t> Importer::Size(const PickleValue& dict, Word key, std::string_view of) const {
  const std::optional<int64_t> size = Integer(dict, key);
  if (!size) return Fault(absl::StrCat("an entry \"", std::string(of), "\" has no size"));
  if (*size < 0 || static_cast<uint64_t>(*size) > kMaxRecordedBytes) {
    return Fault(
        absl::StrCat("an entry \"", std::string(of), "\" has ", *size, " bytes, not 0 to ", kMaxRecordedBytes));
  }
  return static_cast<uint64_t>(*size);
}

// Returns nanoseconds since the first entry, at least 0. Clocks of several threads may differ a little.
uint64_t Importer::TimeOf(const PickleValue& entry) const {
  const int64_t time_us = Integer(entry, kTimeUs).value_or(began_us_);
  constexpr uint64_t kMaxUs = uint64_t{1} << 53;  // 285 years
  if (time_us <= began_us_) return 0;
  return std::min(static_cast<uint64_t>(time_us) - static_cast<uint64_t>(began_us_), kMaxUs) * 1000;
}

absl::Status Importer::ChooseDevice(std::optional<int> device) {
  const std::vector<PickleValue>* histories = List(pickle_.root, kDeviceTraces);
  if (histories == nullptr) return Fault("this is a pickle, but no memory snapshot: it has no device_traces");
  for (const PickleValue& history : *histories) {
    if (history.kind != PickleKind::kList) return Fault("one of device_traces is no list");
    result_.entries.push_back(pickle_.lists[static_cast<size_t>(history.number)].size());
  }
  const auto longest = std::max_element(result_.entries.begin(), result_.entries.end());
  if (longest == result_.entries.end() || *longest == 0) return Fault(kHowToRecord);
  result_.device = static_cast<int>(longest - result_.entries.begin());
  if (device) {
    if (*device < 0 || static_cast<size_t>(*device) >= result_.entries.size() ||
        result_.entries[static_cast<size_t>(*device)] == 0) {
      return Fault(absl::StrCat("there is no history of device ", *device, " in it"));
    }
    result_.device = *device;
  }
  history_ = &pickle_.lists[static_cast<size_t>((*histories)[static_cast<size_t>(result_.device)].number)];
  return absl::OkStatus();
}

absl::Status Importer::AddEntry(const PickleValue& entry) {
  if (entry.kind != PickleKind::kDict) return Fault("an entry of device_traces is no dictionary");
  const std::optional<Word> action = WordOf(entry, kAction);
  if (action == kSnapshot) {
    const std::optional<Word> mark = WordOf(entry, kUserMetadata);
    if (mark == kMarkStep) builder_.Mark(EventKind::kMark, TimeOf(entry));
    if (mark == kMarkInterrupt) builder_.Mark(EventKind::kInterrupt, TimeOf(entry));
    if (mark == kMarkExpect) builder_.Mark(EventKind::kExpect, TimeOf(entry));
    if (mark == kMarkResume) builder_.Mark(EventKind::kResume, TimeOf(entry));
    return absl::OkStatus();
  }
  if (action == kOom) ++result_.failed;
  const bool releases = action == kFreeRequested || action == kFreeCompleted || action == kFree;
  if (action != kAlloc && !releases) return absl::OkStatus();  // segments and similar concern only the allocator

  const std::optional<int64_t> address = Integer(entry, kAddr);
  if (!address) return Fault(absl::StrCat("an entry \"", std::string(kText[*action]), "\" has no addr"));
  absl::StatusOr<uint64_t> size = Size(entry, kSize, kText[*action]);
  if (!size.ok()) return size.status();
  if (*size == 0) return absl::OkStatus();
  const auto at = static_cast<uint64_t>(*address);
  const EventContext context = {.stream = static_cast<uint64_t>(Integer(entry, kStream).value_or(0)),
                                .time_ns = TimeOf(entry)};
  if (action == kAlloc) {
    const NameOrdinal stack = stacks_.Of(entry);
    if (stack != kNoName) of_allocations_.push_back({builder_.allocations(), stack});
    builder_.Allocate(at, *size, context);
  } else if (action != kFreeCompleted || builder_.IsLive(at) || !has_requests_) {
    // A completion is no release if the request was seen, or came before the history.
    builder_.Release(at, *size, context);
  }
  return absl::OkStatus();
}

absl::Status Importer::AddLiveBlock(const PickleValue& block, uint64_t address, uint64_t stream) {
  if (WordOf(block, kState) != kActiveAllocated || builder_.IsLive(address)) return absl::OkStatus();
  absl::StatusOr<uint64_t> bytes = Size(block, kSize, "block");
  if (Integer(block, kRequestedSize)) {
    bytes = Size(block, kRequestedSize, "block");
  } else if (const std::vector<PickleValue>* history = List(block, kHistory); history != nullptr && !history->empty()) {
    if (Integer(history->front(), kRealSize)) bytes = Size(history->front(), kRealSize, "block");  // PyTorch 2.0
  }
  if (!bytes.ok()) return bytes.status();
  if (*bytes == 0) return absl::OkStatus();
  const NameOrdinal stack = stacks_.Of(block);
  if (stack != kNoName) of_live_.push_back({builder_.live_before(), stack});
  builder_.AddLive(*bytes, stream);
  return absl::OkStatus();
}

// Adds blocks that are live now but were not allocated in the history: they were live before it.
absl::Status Importer::AddSegment(const PickleValue& segment) {
  if (Integer(segment, kDevice).value_or(0) != result_.device) return absl::OkStatus();
  const std::vector<PickleValue>* blocks = List(segment, kBlocks);
  if (blocks == nullptr) return absl::OkStatus();
  auto address = static_cast<uint64_t>(Integer(segment, kAddress).value_or(0));
  const auto stream = static_cast<uint64_t>(Integer(segment, kStream).value_or(0));
  for (const PickleValue& block : *blocks) {
    // Blocks are contiguous; those of PyTorch 2.0 have no address.
    if (const std::optional<int64_t> own = Integer(block, kAddress)) address = static_cast<uint64_t>(*own);
    if (absl::Status status = AddLiveBlock(block, address, stream); !status.ok()) return status;
    address += static_cast<uint64_t>(Integer(block, kSize).value_or(0));
  }
  return absl::OkStatus();
}

// By the recording's numbers of blocks: first those that were live before, then the allocations.
Notes Importer::TakeStacks() {
  Notes notes;
  notes.names = stacks_.TakeNames();
  notes.stacks = std::move(of_live_);
  for (const BlockStack& stack : of_allocations_)
    notes.stacks.push_back({builder_.live_before() + stack.id, stack.stack});
  return notes;
}

absl::StatusOr<ImportedSnapshot> Importer::Run(std::optional<int> device) {
  if (pickle_.root.kind == PickleKind::kList) return Fault(kHowToRecord);  // the result of torch.cuda.memory_snapshot()
  if (pickle_.root.kind != PickleKind::kDict) return Fault("this is a pickle, but no memory snapshot");
  if (absl::Status status = ChooseDevice(device); !status.ok()) return status;
  began_us_ = std::max<int64_t>(0, Integer(history_->front(), kTimeUs).value_or(0));
  has_requests_ = std::any_of(history_->begin(), history_->end(),
                              [this](const PickleValue& entry) { return WordOf(entry, kAction) == kFreeRequested; });
  for (const PickleValue& entry : *history_) {
    if (absl::Status status = AddEntry(entry); !status.ok()) return status;
  }
  if (const std::vector<PickleValue>* segments = List(pickle_.root, kSegments); segments != nullptr) {
    for (const PickleValue& segment : *segments) {
      if (absl::Status status = AddSegment(segment); !status.ok()) return status;
    }
  }
  result_.began_ns = static_cast<uint64_t>(began_us_) * 1000;
  result_.allocations = builder_.allocations();
  result_.live_before = builder_.live_before();
  result_.missed_releases = builder_.missed_releases();
  if (result_.allocations + result_.live_before == 0) return Fault(kHowToRecord);
  result_.notes = TakeStacks();
  result_.trace = builder_.Finish();
  return std::move(result_);
}

}  // namespace

absl::StatusOr<ImportedSnapshot> ReadSnapshot(ByteSource source, std::string_view name, std::optional<int> device,
                                              uint64_t memory_limit) {
  PickleOptions options;
  options.words = kText;
  options.text_bytes = 512;
  options.memory_limit = memory_limit;
  absl::StatusOr<Pickle> pickle = ReadPickle(std::move(source), name, options);
  if (!pickle.ok()) return pickle.status();
  return Importer(*pickle, name).Run(device);
}

}  // namespace hotpack
