#include "tools/report/chrome.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "profiler/history.h"
#include "tools/cli/size_text.h"

namespace hotpack {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kProgram = 1, kDevice = 2;
constexpr size_t kPieceBytes = size_t{1} << 16;

class ChromeWriter {
 public:
  ChromeWriter(const TraceFile& file, const TextSink& sink, ChromeCounts* counts)
      : file_(file), sink_(sink), counts_(counts) {
    const auto& events = file.trace.events;
    counts->times = std::any_of(events.begin(), events.end(), [](const Event& event) { return event.time_ns > 0; });
  }

  absl::Status Write() {
    piece_ = "{\"displayTimeUnit\":\"ms\",\"otherData\":" +
             Json{{"program", file_.origin.program},
                  {"times", counts_->times ? "recorded" : "none: one event is one microsecond"}}
                 .dump(-1, ' ', false, Json::error_handler_t::replace) +
             ",\"traceEvents\":[\n";
    Name("process_name", kProgram, 0, file_.origin.program.empty() ? "program" : file_.origin.program);
    if (!file_.notes.launches.empty()) Name("process_name", kDevice, 0, "device");
    for (uint64_t e = 0; e < file_.trace.events.size() && status_.ok(); ++e) AddEvent(e);
    std::vector<uint64_t> kept;  // ascending: the same recording gives the same text
    for (const auto& [id, bytes] : live_) kept.push_back(id);
    std::sort(kept.begin(), kept.end());
    for (uint64_t id : kept) Block("e", id, Time(file_.trace.events.size()), Json());
    for (size_t i = 0; i < file_.notes.launches.size() && status_.ok(); ++i) AddLaunch(file_.notes.launches[i]);
    for (size_t i = 0; i < file_.notes.ranges.size() && status_.ok(); ++i) AddRange(file_.notes.ranges[i]);
    piece_ += "\n]}\n";
    if (status_.ok()) status_ = sink_(piece_);
    return status_;
  }

 private:
  // Returns microseconds of the moment before event e.
  double Time(uint64_t e) const {
    if (!counts_->times) return static_cast<double>(e);
    const auto& events = file_.trace.events;
    if (events.empty()) return 0;
    return static_cast<double>(events[std::min<uint64_t>(e, events.size() - 1)].time_ns) / 1e3;
  }
  double Time(uint64_t time_ns, uint64_t position) const {
    return counts_->times && time_ns > 0 ? static_cast<double>(time_ns) / 1e3 : Time(position);
  }

  std::string Noted(NameOrdinal name, const char* otherwise) const {
    return name < file_.notes.names.size() ? file_.notes.names[name] : otherwise;
  }

  void Add(const Json& object) {
    if (!first_) piece_ += ",\n";
    first_ = false;
    piece_ += object.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (piece_.size() < kPieceBytes || !status_.ok()) return;
    status_ = sink_(piece_);
    piece_.clear();
  }

  void Name(const char* what, int process, uint32_t thread, const std::string& name) {
    Add({{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}});
  }
  void NameThread(int process, uint32_t thread, const std::string& name) {
    if (named_.insert({process, thread}).second) Name("thread_name", process, thread, name);
  }

  void Block(const char* phase, uint64_t id, double time, const Json& arguments) {
    Json object = {{"ph", phase}, {"cat", "block"}, {"name", FormatSize(live_[id])}, {"id", id}, {"pid", kProgram},
                   {"tid", 0},    {"ts", time}};
    if (!arguments.is_null()) object["args"] = arguments;
    Add(object);
  }

  void AddEvent(uint64_t e) {
    const Event& event = file_.trace.events[e];
    const double time = Time(e);
    const uint64_t rounded = uint64_t{UnitsOf(event.bytes)} * kBlockUnit;
    if (event.kind == EventKind::kAllocate) {
      live_[event.id] = event.bytes;
      Block("b", event.id, time,
            {{"request", counts_->blocks}, {"bytes", event.bytes}, {"stream", event.stream}, {"thread", event.thread}});
      ++counts_->blocks;
      live_bytes_ += rounded;
    } else if (event.kind == EventKind::kRelease) {
      Block("e", event.id, time, Json());
      live_.erase(event.id);
      live_bytes_ -= rounded;
    } else if (event.kind == EventKind::kMark) {
      Add({{"ph", "i"}, {"s", "p"}, {"name", "iteration"}, {"pid", kProgram}, {"tid", event.thread}, {"ts", time}});
      return;
    } else {
      return;
    }
    Add({{"ph", "C"}, {"name", "live bytes"}, {"pid", kProgram}, {"ts", time}, {"args", {{"bytes", live_bytes_}}}});
  }

  void AddLaunch(const Launch& launch) {
    ++counts_->launches;
    const Json arguments = {{"blocks", launch.blocks}};
    if (launch.end_ns > launch.start_ns && counts_->times) {
      NameThread(kDevice, launch.stream, absl::StrCat("stream ", launch.stream));
      Add({{"ph", "X"},
           {"cat", "launch"},
           {"name", Noted(launch.name, "kernel")},
           {"pid", kDevice},
           {"tid", launch.stream},
           {"ts", static_cast<double>(launch.start_ns) / 1e3},
           {"dur", static_cast<double>(launch.end_ns - launch.start_ns) / 1e3},
           {"args", arguments}});
      return;
    }
    Add({{"ph", "i"},
         {"s", "t"},
         {"cat", "launch"},
         {"name", Noted(launch.name, "kernel")},
         {"pid", kProgram},
         {"tid", launch.thread},
         {"ts", Time(launch.time_ns, launch.position)},
         {"args", arguments}});
  }

  void AddRange(const RangeEdge& edge) {
    const double time = Time(edge.time_ns, edge.position);
    Json object = {
        {"cat", "range"}, {"name", Noted(edge.name, "range")}, {"pid", kProgram}, {"tid", edge.thread}, {"ts", time}};
    switch (edge.kind) {
      case RangeKind::kPush:
        ++depth_[edge.thread];
        ++counts_->ranges;
        object["ph"] = "B";
        break;
      case RangeKind::kPop:
        if (depth_[edge.thread] == 0) return;  // opened before the recording
        --depth_[edge.thread];
        object["ph"] = "E";
        object.erase("name");
        break;
      case RangeKind::kStart:
        ++counts_->ranges;
        object["ph"] = "b";
        object["id"] = edge.id;
        free_[edge.id] = Noted(edge.name, "range");
        break;
      case RangeKind::kEnd:
        if (!free_.contains(edge.id)) return;
        object["ph"] = "e";
        object["id"] = edge.id;
        object["name"] = free_[edge.id];
        break;
      case RangeKind::kMark:
        object["ph"] = "i";
        object["s"] = "t";
        break;
    }
    Add(object);
  }

  const TraceFile& file_;
  const TextSink& sink_;
  ChromeCounts* counts_;
  std::string piece_;
  absl::Status status_;
  bool first_ = true;
  uint64_t live_bytes_ = 0;
  absl::flat_hash_map<uint64_t, uint64_t> live_;  // id → requested bytes
  std::map<uint16_t, int> depth_;
  std::map<uint64_t, std::string> free_;
  std::set<std::pair<int, uint32_t>> named_;
};

}  // namespace

absl::Status WriteChromeTrace(const TraceFile& file, const TextSink& sink, ChromeCounts* counts) {
  return ChromeWriter(file, sink, counts).Write();
}

}  // namespace hotpack
