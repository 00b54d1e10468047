#include "tests/property/pool_contract_draw.h"

#include <algorithm>
#include <cstdio>

namespace property {
namespace {

class Drawer {
 public:
  Drawer(const ContractShape& shape, uint64_t seed, uint64_t changes, int part)
      : shape_(shape),
        part_(part),
        captures_(shape.together == 1 || seed / 64 % 2 == 0),
        announced_(shape.together == 1 || seed / 64 % 4 == 0),
        random_(seed),
        changes_(changes) {}

  Drawn Draw() {
    DrawSettings();
    DrawStep();
    for (int i = 0; i < drawn_.settings.iterations; ++i) AddIteration(i);
    return std::move(drawn_);
  }

 private:
  void DrawSettings() {
    Settings& s = drawn_.settings;
    s.devices = shape_.devices;
    s.apart = shape_.apart;
    s.threads = shape_.threads > 1 ? 2 + random_.Int(shape_.threads - 1) : 1;
    const int count = 1 + random_.Int(5);
    const bool legacy = part_ == 0 && random_.Chance(700) && !(shape_.together > 1 && captures_);
    for (int r = 0; r < count; ++r) {
      Role role;
      role.device = random_.Int(s.devices);
      role.legacy = r < s.devices && legacy;
      if (role.legacy) role.device = r;
      role.non_blocking = !role.legacy && random_.Chance(600);
      role.named = r == 0 || random_.Chance(650);
      role.thread = random_.Int(s.threads);
      s.roles.push_back(role);
    }
    told_ = shape_.told >= 0 ? shape_.told : random_.Of(std::vector<int>{0, 1000, 300, 700});
    s.tells = told_ > 0;
    s.slots = 3 + random_.Int(10);
    s.marks = random_.Chance(600);
    s.iterations = s.marks ? 2 + random_.Int(4) : 2 + random_.Int(3) + 90 / s.slots;
    s.waits_for_plan = random_.Chance(850);
    s.waits_at_release = random_.Of(std::vector<int>{0, 0, 0, 300, 1000});
    s.implicit = random_.Chance(500);
    s.announced = shape_.announced && captures_ && announced_;
    s.raw = shape_.raw && captures_ && (shape_.together == 1 || !announced_);
    s.calm = shape_.together > 1 && captures_;
    s.replaces_named = shape_.replaces_named;
    late_ = random_.Chance(300) ? 1 + random_.Int(2) : 0;
    deviations_ = random_.Of(std::vector<int>{0, 4, 15, 40});
    for (int i = 1 + random_.Int(4); i > 0; --i) sizes_.push_back(Size());
  }

  uint32_t Size() {
    const int log2 = 9 + random_.Int(shape_.bytes_log2 - 8);
    const uint32_t least = uint32_t{1} << log2;
    return random_.Chance(500) ? least : least + static_cast<uint32_t>(random_.Below(least));
  }
  uint8_t AnyRole() { return static_cast<uint8_t>(random_.Int(static_cast<int>(drawn_.settings.roles.size()))); }
  uint8_t NamedRole(int device = -1) {
    for (int tries = 0; tries < 20; ++tries) {
      const uint8_t role = AnyRole();
      const Role& r = drawn_.settings.roles[role];
      if (r.named && (device < 0 || r.device == device)) return role;
    }
    return 0;
  }
  uint32_t Hint() { return static_cast<uint32_t>(random_.Next()); }

  // A slot's life in the step, at drawn moments: request, uses, perhaps on other streams, release.
  void DrawStep() {
    constexpr int kMoments = 1000;
    std::vector<std::pair<int, Op>> timed;
    const auto add = [&](int at, Op op) {
      op.hint = Hint();
      timed.push_back({at, op});
    };
    const int usual = random_.Int(4);  // how far a block is from being used on its own stream alone
    for (int slot = 0; slot < drawn_.settings.slots; ++slot) {
      const auto number = static_cast<uint16_t>(slot);
      const uint8_t owner = NamedRole();
      const int begin = random_.Int(kMoments);
      int end = begin + 1 + random_.Int(random_.Chance(300) ? kMoments : kMoments / 4);
      add(begin, {.what = Do::kRequest, .role = owner, .slot = number, .bytes = random_.Of(sizes_)});
      for (int use = random_.Int(4); use >= 0; --use) {
        const uint8_t role = random_.Int(4) < usual ? AnyRole() : owner;
        const int at = begin + random_.Int(end - begin);
        add(at, {.what = Do::kUse, .role = role, .slot = number});
        if (role != owner && drawn_.settings.roles[role].named && random_.Chance(told_)) {
          add(random_.Chance(700) ? at : begin, {.what = Do::kTell, .role = role, .slot = number});
        }
      }
      add(end, {.what = Do::kRelease, .slot = number});
    }
    const auto some = [&](int most, Op op) {
      for (int i = random_.Int(most + 1); i > 0; --i) {
        op.role = AnyRole();
        op.other = AnyRole();
        add(random_.Int(kMoments), op);
      }
    };
    some(random_.Chance(400) ? 3 : 0, {.what = Do::kWait});
    some(random_.Chance(100) ? 1 : 0, {.what = Do::kSyncStream});
    some(random_.Chance(50) ? 1 : 0, {.what = Do::kSyncDevice});
    some(random_.Chance(400) ? 2 : 0, {.what = Do::kReplaceStream});
    if (shape_.replaces_named) some(3, {.what = Do::kReplaceStream});
    some(random_.Chance(50) ? 1 : 0, {.what = Do::kEmptyCache});
    if (drawn_.settings.announced || drawn_.settings.raw) {
      const int begin = random_.Int(kMoments);
      add(begin, {.what = Do::kBeginCapture, .role = AnyRole()});
      add(begin + 1 + random_.Int(kMoments / 2), {.what = Do::kEndCapture});
      some(2, {.what = Do::kLaunch});
      some(1, {.what = Do::kDropGraph});
    }
    std::stable_sort(timed.begin(), timed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    // What comes after the step's end is done at the beginning of the next one.
    const auto late = std::find_if(timed.begin(), timed.end(), [](const auto& op) { return op.first >= kMoments; });
    std::rotate(timed.begin(), late, timed.end());
    for (const auto& [at, op] : timed) {
      step_.push_back(op);
      step_.back().origin = static_cast<uint16_t>(step_.size());
    }
  }

  // The step once more, with changes.
  void AddIteration(int iteration) {
    const bool captures = changes_.Chance(400);
    std::vector<Op> ops;
    for (Op op : step_) {
      op.iteration = static_cast<uint16_t>(iteration);
      op.hint = static_cast<uint32_t>(changes_.Next());
      const bool capture = op.what == Do::kBeginCapture || op.what == Do::kEndCapture;
      if (capture && !captures) continue;
      if (iteration < late_ && op.what == Do::kRequest) op.role = 0;
      if (iteration < late_ && op.what == Do::kTell) continue;
      if (changes_.Chance(deviations_)) {
        switch (changes_.Int(4)) {
          case 0:
            continue;
          case 1:
            op.bytes = changes_.Of(sizes_) / (1 + static_cast<uint32_t>(changes_.Int(3))) + 1;
            break;
          case 2:
            if (!ops.empty()) std::swap(ops.back(), op);
            break;
          case 3:
            ops.push_back({.what = Do::kRequest,
                           .role = NamedRoleChanged(),
                           .slot = static_cast<uint16_t>(drawn_.settings.slots),
                           .origin = static_cast<uint16_t>(step_.size() + 1),
                           .iteration = op.iteration,
                           .bytes = changes_.Of(sizes_),
                           .hint = op.hint});
            ops.push_back({.what = Do::kUse,
                           .role = ops.back().role,
                           .slot = ops.back().slot,
                           .origin = ops.back().origin,
                           .iteration = op.iteration,
                           .hint = op.hint});
            break;
        }
      }
      ops.push_back(op);
    }
    drawn_.ops.insert(drawn_.ops.end(), ops.begin(), ops.end());
    drawn_.ops.push_back({.what = Do::kMark,
                          .origin = static_cast<uint16_t>(step_.size() + 2),
                          .iteration = static_cast<uint16_t>(iteration)});
  }
  uint8_t NamedRoleChanged() {
    const uint8_t role = static_cast<uint8_t>(changes_.Int(static_cast<int>(drawn_.settings.roles.size())));
    return drawn_.settings.roles[role].named ? role : 0;
  }

  const ContractShape& shape_;
  const int part_;
  // Of programs that run together either one uses the legacy stream, or all may capture; and all their captures are
  // announced or none is: PyTorch records events late while one is that was announced, whichever streams capture by
  // then.
  const bool captures_, announced_;
  Random random_, changes_;
  Drawn drawn_;
  std::vector<Op> step_;
  std::vector<uint32_t> sizes_;
  int told_ = 0, deviations_ = 0;
  int late_ = 0;  // until this iteration the allocator knows one stream alone
};

}  // namespace

Drawn DrawProgram(const ContractShape& shape, uint64_t seed, uint64_t changes, int part) {
  return Drawer(shape, seed * 64 + static_cast<uint64_t>(part), changes * 64 + static_cast<uint64_t>(part), part)
      .Draw();
}

const std::vector<ContractShape>& ContractShapes() {
  static const std::vector<ContractShape> shapes = {
      {.name = "Untold", .weight = 10, .told = 0},
      {.name = "Told", .weight = 5, .told = 1000},
      {.name = "Mixed", .weight = 15},
      {.name = "Turns", .weight = 3, .announced = true, .raw = true, .threads = 3},
      // Three programs hold three times as much, and PyTorch's allocator, too, frees nothing during a capture.
      {.name = "Together",
       .weight = 7,
       .announced = true,
       .raw = true,
       .together = 3,
       .environment = {{"SIMGPU_MEMORY", "4G"}}},
      {.name = "TwoDevices", .weight = 8, .devices = 2, .environment = {{"SIMGPU_DEVICES", "2"}}},
      {.name = "TwoDevicesApart",
       .weight = 4,
       .devices = 2,
       .apart = true,
       .environment = {{"SIMGPU_DEVICES", "2"}, {"SIMGPU_PEERS", "0"}}},
      {.name = "AnnouncedCaptures", .weight = 10, .announced = true},
      {.name = "RawCaptures", .weight = 12, .raw = true},
      {.name = "SavedPlan", .weight = 2, .saved_plan = true},
      {.name = "EndedStreams", .weight = 6, .replaces_named = true},
      {.name = "Off", .weight = 6, .announced = true, .raw = true, .environment = {{"HOTPACK", "0"}}},
      {.name = "Recorded", .weight = 2, .recorded = true, .environment = {{"HOTPACK", "record"}}},
      {.name = "PlainArena",
       .weight = 5,
       .raw = true,
       .bytes_log2 = 25,
       .environment = {{"SIMGPU_MEMORY", "4G"}, {"HOTPACK_ARENA", "plain:128"}}},
      {.name = "Overcommit",
       .weight = 6,
       .starves = true,
       .bytes_log2 = 24,
       .environment = {{"SIMGPU_MEMORY", "64M"}, {"HOTPACK_OVERCOMMIT", "managed"}}},
      {.name = "LittleMemory",
       .weight = 3,
       .raw = true,
       .starves = true,
       .bytes_log2 = 24,
       .environment = {{"SIMGPU_MEMORY", "64M"}}},
  };
  return shapes;
}

const ContractShape* FindContractShape(const std::string& name) {
  for (const ContractShape& shape : ContractShapes()) {
    if (name == shape.name) return &shape;
  }
  return nullptr;
}

std::string Text(const Op& op) {
  char text[160];
  switch (op.what) {
    case Do::kRequest:
      snprintf(text, sizeof(text), "request  b%d on s%d, %u bytes", op.slot, op.role, op.bytes);
      break;
    case Do::kRelease:
      snprintf(text, sizeof(text), "release  b%d", op.slot);
      break;
    case Do::kUse:
      snprintf(text, sizeof(text), "use      b%d on s%d", op.slot, op.role);
      break;
    case Do::kTell:
      snprintf(text, sizeof(text), "record   b%d on s%d", op.slot, op.role);
      break;
    case Do::kWait:
      snprintf(text, sizeof(text), "wait     s%d for s%d", op.role, op.other);
      break;
    case Do::kEndCapture:
    case Do::kDropGraph:
    case Do::kEmptyCache:
    case Do::kMark: {
      const char* what = op.what == Do::kEndCapture ? "end of capture" : op.what == Do::kDropGraph ? "drop graph" : "";
      snprintf(text, sizeof(text), "%s",
               op.what == Do::kMark         ? "-- iteration"
               : op.what == Do::kEmptyCache ? "empty cache"
                                            : what);
      break;
    }
    default: {
      const char* what = op.what == Do::kSyncStream      ? "synchronize"
                         : op.what == Do::kSyncDevice    ? "synchronize device of"
                         : op.what == Do::kReplaceStream ? "replace"
                         : op.what == Do::kBeginCapture  ? "capture"
                                                         : "launch graph on";
      snprintf(text, sizeof(text), "%s s%d", what, op.role);
    }
  }
  return text;
}

}  // namespace property
