#include "tests/property/pool_contract_player.h"

#include <cstdio>

#include "simgpu/checker.h"

namespace property {
namespace {

uint32_t Bit(int stream) { return uint32_t{1} << stream; }

}  // namespace

ContractPlayer::ContractPlayer(const Drawn& drawn, Allocator* allocator, const std::vector<CUcontext>& contexts,
                               uint64_t drop, bool alone)
    : drawn_(drawn),
      allocator_(allocator),
      contexts_(contexts),
      drop_(drop),
      alone_(alone),
      workers_(drawn.settings.threads),
      order_(drawn.settings.implicit),
      blocks_(static_cast<size_t>(drawn.settings.slots) + 1),
      entered_(static_cast<size_t>(drawn.settings.threads), kNone),
      idle_events_(contexts.size()) {
  for (int role = 0; role < static_cast<int>(drawn.settings.roles.size()); ++role) current_.push_back(AddStream(role));
}

ContractPlayer::~ContractPlayer() = default;

void ContractPlayer::Fail(const std::string& fault, const std::string& detail) {
  if (!fault_.empty()) return;
  fault_ = fault;
  detail_ = detail;
}

bool ContractPlayer::Ok(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) Fail(std::string(call) + " refused: " + std::to_string(result), "");
  return result == CUDA_SUCCESS;
}

void ContractPlayer::Enter(int device) {
  if (entered_[thread_] == device) return;
  if (Ok(cuCtxSetCurrent(contexts_[device]), "cuCtxSetCurrent")) entered_[thread_] = device;
}

int ContractPlayer::AddStream(int number) {
  const Role& role = drawn_.settings.roles[number];
  const StreamKind kind = role.legacy         ? StreamKind::kLegacy
                          : role.non_blocking ? StreamKind::kNonBlocking
                                              : StreamKind::kBlocking;
  const int stream = order_.AddStream(role.device, kind);
  if (stream < 0) return kNone;
  Stream added;
  added.role = number;
  added.device = role.device;
  Enter(role.device);
  if (!role.legacy)
    Ok(cuStreamCreate(&added.handle, role.non_blocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT), "cuStreamCreate");
  streams_.push_back(added);
  return stream;
}

void ContractPlayer::Run() {
  reports_ = simgpuReports();
  for (at_ = 0; at_ < drawn_.ops.size() && fault_.empty(); ++at_) {
    const Op& op = drawn_.ops[at_];
    int thread = drawn_.settings.threads == 1 ? 0 : drawn_.settings.roles[op.role].thread;
    if (drawn_.settings.threads > 1 && op.what == Do::kRelease)
      thread = static_cast<int>(op.hint >> 16) % drawn_.settings.threads;
    if (op.what == Do::kEndCapture && capture_ != nullptr) thread = capture_->thread;
    const bool captured = capture_ != nullptr;
    workers_.Run(thread, [&] {
      thread_ = thread;
      Step(op);
      if (fault_.empty() && (captured || capture_ != nullptr)) JudgeCaptures();
    });
    if (alone_ && simgpuReports() != reports_) Judge(op);
  }
  thread_ = 0;
  if (fault_.empty()) End();
  if (alone_ && simgpuReports() != reports_) Fail("a report at the end", "");
}

// A report has come of this operation.
void ContractPlayer::Judge(const Op& op) {
  if (op.what == Do::kUse && blocks_[op.slot].pointer != nullptr) JudgeUse(blocks_[op.slot], current_[op.role]);
  if (op.what == Do::kLaunch && !graphs_.empty()) {
    for (const Named& named : graphs_.back().names) {
      if (blocks_[named.slot].pointer != nullptr) JudgeUse(blocks_[named.slot], current_[op.role]);
    }
  }
  Fail(op.what == Do::kUse || op.what == Do::kLaunch ? "a report of a use, unexplained" : "a report of no use", "");
}

// Finds the earlier block at the same addresses that the report is about. Of several it is the most likely one: uses
// recorded by the allocator are ordered, which the program cannot see.
void ContractPlayer::JudgeUse(const Block& block, int stream) {
  const auto address = reinterpret_cast<uint64_t>(block.pointer);
  std::string fault, detail;
  int best = 4;
  for (const Past& past : past_) {
    if (past.address >= address + block.bytes || address >= past.address + past.bytes) continue;
    const bool own = past.stream == block.stream;
    for (int user = 0; user < static_cast<int>(streams_.size()); ++user) {
      if (past.uses[user] == 0 || order_.Covers(stream, user, past.uses[user])) continue;
      const bool told = (past.told & Bit(user)) != 0;
      const int rank = told ? 3 : own ? 0 : user == past.stream ? 2 : 1;
      if (rank >= best) continue;
      best = rank;
      const char* names[] = {"THE PROGRAM IS WRONG: a use that its owner had to wait for",
                             "a use that it was not told of", "the owner's use", "a use that it was told of"};
      fault = names[rank];
      if (told && streams_[user].device != streams_[past.stream].device) fault += ", on another device";
      if (!streams_[user].alive) fault += ", by a stream that has ended";
      fault += own ? "; own pool" : "; another pool's memory";
      if (past.captured || block.captured || capture_ != nullptr) fault += "; captures";
      char text[200];
      snprintf(text, sizeof(text),
               "block %d of s%d is used on s%d, which is not after the use of block %d of s%d on s%d",
               static_cast<int>(block.serial), streams_[block.stream].role, streams_[stream].role,
               static_cast<int>(past.serial), streams_[past.stream].role, streams_[user].role);
      detail = text;
    }
  }
  if (!fault.empty()) Fail(fault, detail);
}

void ContractPlayer::Step(const Op& op) {
  ++counts_.operations;
  switch (op.what) {
    case Do::kRequest:
      return Request(op);
    case Do::kRelease:
      return Release(op.slot, op.hint);
    case Do::kUse:
      return Use(op);
    case Do::kTell:
      return Tell(op);
    case Do::kWait: {
      const int from = current_[op.other], to = current_[op.role];
      if (from != to && Works(to) && RecordEvent(from)) WaitEvent(to, streams_[from].events.back());
      return;
    }
    case Do::kSyncStream:
      return SyncStream(current_[op.role]);
    case Do::kSyncDevice:
      return SyncDevice(streams_[current_[op.role]].device);
    case Do::kReplaceStream:
      return ReplaceStream(op);
    case Do::kBeginCapture:
      return BeginCapture(op);
    case Do::kEndCapture:
      return EndCapture();
    case Do::kLaunch:
      return Launch(op);
    case Do::kDropGraph:
      return DropGraph();
    case Do::kEmptyCache:
      if (capture_ == nullptr && !drawn_.settings.calm) allocator_->EmptyCache();
      return;
    case Do::kMark:
      if (drawn_.settings.marks) allocator_->Step();
      if (drawn_.settings.waits_for_plan) allocator_->WaitForPlan();
      return;
  }
}

void ContractPlayer::Request(const Op& op) {
  Block& block = blocks_[op.slot];
  // x = f(x): the old one goes after the new one is there, or before.
  const bool before = op.hint % 2 == 0;
  if (block.pointer != nullptr && before) Release(op.slot, op.hint);
  const int number = current_[op.role];
  Stream& stream = streams_[number];
  Enter(stream.device);
  Block fresh;
  fresh.bytes = op.bytes;
  fresh.stream = number;
  fresh.serial = ++serial_;
  fresh.captured = capture_ != nullptr;
  fresh.pool = capture_ != nullptr && capture_->graph.announced && capture_->stream == number;
  stream.told_of |= !fresh.pool;
  fresh.pointer = allocator_->Malloc(op.bytes, stream.device, stream.handle);
  ++counts_.requests;
  if (fresh.pointer == nullptr) {
    ++counts_.refused;
    return;
  }
  if (fresh.pool && allocator_->PoolsUntold())
    simgpuBlockGiven(reinterpret_cast<uint64_t>(fresh.pointer), op.bytes, stream.handle);
  if (!fresh.pool) {
    fresh.before = stream.owed;
    stream.owned = true;
  }
  fresh.given = order_.Mark(number);
  if (block.pointer != nullptr) Release(op.slot, op.hint);
  if (block.pointer == nullptr) {
    block = fresh;
  } else {  // the old one had to stay
    blocks_.push_back(fresh);
    Release(static_cast<int>(blocks_.size()) - 1, 0);
    if (blocks_.back().pointer == nullptr) blocks_.pop_back();
  }
}

void ContractPlayer::Release(int slot, uint32_t hint) {
  Block& block = blocks_[slot];
  if (block.pointer == nullptr) {
    ++counts_.skipped;
    return;
  }
  // PyTorch's allocator records an event on the recorded streams. During an announced capture it does so later.
  for (int s = 0; s < static_cast<int>(streams_.size()); ++s) {
    if (capture_ == nullptr || capture_->graph.announced || (block.told & Bit(s)) == 0 || Works(s)) continue;
    ++counts_.skipped;
    return;
  }
  Stream& owner = streams_[block.stream];
  Moment untold = block.uses;
  bool told = false;
  for (int s = 0; s < static_cast<int>(streams_.size()); ++s) {
    if ((block.told & Bit(s)) == 0) continue;
    told = told || untold[s] != 0;
    untold[s] = 0;
  }
  if (static_cast<int>(hint >> 20) % 1000 < drawn_.settings.waits_at_release) Order(block.stream, untold, {}, hint);
  if (told) ++counts_.told;
  if (!order_.Covers(block.stream, untold)) ++counts_.untold;
  if (!block.pool) Join(&owner.owed, untold);
  const auto address = reinterpret_cast<uint64_t>(block.pointer);
  if (block.pool && allocator_->PoolsUntold()) simgpuBlockReturned(address, owner.handle);
  past_.push_back({address, block.bytes, block.serial, block.stream, capture_ != nullptr, block.uses, block.told});
  allocator_->Free(block.pointer, block.bytes, owner.device, owner.handle);
  ++counts_.releases;
  block = {};
}

void ContractPlayer::Use(const Op& op) {
  Block& block = blocks_[op.slot];
  const int number = current_[op.role];
  const bool captures = capture_ != nullptr && capture_->stream == number;
  if (block.pointer == nullptr || (!captures && (!Works(number) || !OrderUse(block, number, op.hint))) ||
      (captures && streams_[block.stream].device != streams_[number].device)) {
    ++counts_.skipped;
    return;
  }
  Enter(streams_[number].device);
  uint32_t tick = captures ? 0 : order_.Submit(number);
  const auto address = reinterpret_cast<CUdeviceptr>(block.pointer);
  if (drawn_.settings.apart && streams_[block.stream].device != streams_[number].device) {
    const size_t half = block.bytes / 2;
    if (!Ok(cuMemcpyDtoDAsync_v2(address, address + half, half, streams_[number].handle), "cuMemcpyDtoDAsync")) return;
  } else if (!Ok(cuMemsetD8Async(address, 0, block.bytes, streams_[number].handle), "cuMemsetD8Async")) {
    return;
  }
  ++counts_.uses;
  if (captures) {
    ++capture_->nodes;
    capture_->graph.names.push_back({op.slot, block.serial, block.pool});
  } else {
    block.uses[number] = tick;
  }
}

void ContractPlayer::Tell(const Op& op) {
  Block& block = blocks_[op.slot];
  const int number = current_[op.role];
  if (block.pointer == nullptr || !drawn_.settings.roles[op.role].named || number == block.stream) {
    ++counts_.skipped;
    return;
  }
  Enter(op.hint % 2 == 0 ? streams_[number].device : streams_[block.stream].device);
  streams_[number].told_of = true;
  allocator_->RecordStream(block.pointer, streams_[number].device, streams_[number].handle);
  block.told |= Bit(number);
}

void ContractPlayer::SyncStream(int stream) {
  if (capture_ != nullptr || !streams_[stream].alive) return;
  Enter(streams_[stream].device);
  // Another player may capture in global mode, which perhaps forbids such waits to all threads in that mode.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  Ok(cuThreadExchangeStreamCaptureMode(&mode), "cuThreadExchangeStreamCaptureMode");
  if (Ok(cuStreamSynchronize(streams_[stream].handle), "cuStreamSynchronize")) order_.HostSawStream(stream);
  Ok(cuThreadExchangeStreamCaptureMode(&mode), "cuThreadExchangeStreamCaptureMode");
}

void ContractPlayer::SyncDevice(int device) {
  if (capture_ != nullptr || drawn_.settings.calm) return;
  Enter(device);
  if (Ok(cuCtxSynchronize(), "cuCtxSynchronize")) order_.HostSawDevice(device);
}

// A stream that the allocator does not know may end at any time, with work pending. Then an event stands for it. A
// stream that it knows ends after the blocks that name it. If blocks were requested on it, the next stream with its
// handle has its pool too. So that stream waits for all work that the pool must follow, and the host waits for the
// stream.
void ContractPlayer::ReplaceStream(const Op& op) {
  const int number = current_[op.role];
  const Role& role = drawn_.settings.roles[op.role];
  if (capture_ != nullptr || role.legacy || (role.named && !drawn_.settings.replaces_named) ||
      streams_.size() == kMaxStreams) {
    ++counts_.skipped;
    return;
  }
  for (int slot = 0; slot < static_cast<int>(blocks_.size()); ++slot) {
    const Block& block = blocks_[slot];
    if (block.pointer != nullptr && (block.stream == number || (block.told & Bit(number)) != 0)) Release(slot, 0);
  }
  Stream& stream = streams_[number];
  if (stream.owned) {
    if (!Order(number, stream.owed, {}, op.hint)) return Fail("a stream cannot be ended", "");
    SyncStream(number);
  }
  if (!RecordEvent(number)) return;
  Enter(stream.device);
  if (!Ok(cuStreamDestroy(stream.handle), "cuStreamDestroy")) return;
  stream.alive = false;
  ++counts_.streams_ended;
  current_[op.role] = AddStream(op.role);
}

void ContractPlayer::End() {
  if (capture_ != nullptr) {
    workers_.Run(capture_->thread, [&] {
      thread_ = capture_->thread;
      EndCapture();
    });
    thread_ = 0;
  }
  for (int slot = 0; slot < static_cast<int>(blocks_.size()); ++slot) {
    if (blocks_[slot].pointer != nullptr) Release(slot, 0);
  }
  while (!graphs_.empty()) DropGraph();
}

}  // namespace property
