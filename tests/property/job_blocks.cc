// The blocks of a job, and the work that uses them.
#include <algorithm>

#include "simgpu/checker.h"
#include "tests/property/hotpack_calls.h"
#include "tests/property/job.h"
#include "tests/property/small_sets.h"

namespace property {

int Job::NewBlock(const Block& block) {
  int number = static_cast<int>(blocks_.size());
  if (free_numbers_.empty()) {
    blocks_.push_back(block);
  } else {
    number = free_numbers_.back();
    free_numbers_.pop_back();
    blocks_[number] = block;
  }
  live_.push_back(number);
  ++counts_.allocations;
  return number;
}

void Job::Forget(int number) {
  Remove(&live_, number);
  blocks_[number] = {};
  free_numbers_.push_back(number);
  ++counts_.releases;
}

int Job::Allocate(How how, int context, int stream, uint64_t bytes) {
  const bool plain = how == How::kPlain || how == How::kPitch;
  if (plain && !UnsafeCallAllowed()) return kNone;
  if (!plain && (stream == kNone || streams_[stream].context != context || !Usable(stream))) return kNone;
  if (!Enter(context)) return kNone;
  ++counts_.operations;
  Block block;
  block.bytes = bytes;
  block.context = context;
  const CUstream handle = plain ? nullptr : streams_[stream].handle;
  const bool per_thread = !plain && streams_[stream].kind == Kind::kPerThread;
  bool made = false;
  if (how == How::kAsyncPerThread && !per_thread) how = How::kAsync;
  if (how == How::kHotpack && Hotpack().malloc == nullptr) how = How::kAsync;
  switch (how) {
    case How::kPlain:
      made = Ok(cuMemAlloc_v2(&block.address, bytes));
      break;
    case How::kPitch: {
      size_t pitch = 0;
      const uint64_t height = 1 + bytes / 4096;
      made = Ok(cuMemAllocPitch_v2(&block.address, &pitch, std::min<uint64_t>(bytes, 4096), height, 4));
      block.bytes = pitch * height;
      break;
    }
    case How::kAsync:
      made = Ok(cuMemAllocAsync(&block.address, bytes, handle));
      break;
    case How::kAsyncPerThread:
      made = Ok(cuMemAllocAsync_ptsz(&block.address, bytes, nullptr));
      break;
    case How::kFromPool: {
      CUmemoryPool pool = nullptr;
      made = Ok(cuDeviceGetDefaultMemPool(&pool, contexts_[context].device)) &&
             Ok(cuMemAllocFromPoolAsync(&block.address, bytes, pool, handle));
      break;
    }
    case How::kHotpack: {
      void* pointer = nullptr;
      made = Ok(static_cast<CUresult>(Hotpack().malloc(&pointer, bytes, handle)));
      block.address = reinterpret_cast<CUdeviceptr>(pointer);
      if (made) simgpuBlockGiven(block.address, bytes, handle);  // the witness does not see these
      break;
    }
  }
  if (!made) return kNone;
  block.how = how;
  block.home = plain ? kNone : stream;
  return NewBlock(block);
}

bool Job::Visible(int number, int stream) {
  Block& block = blocks_[number];
  if (block.home == kNone || block.home == stream || Contains(block.ordered, stream)) return true;
  if (!Edge(block.home, stream)) return false;
  blocks_[number].ordered.push_back(stream);
  return true;
}

void Job::NoteUse(int number, int stream) {
  std::vector<int>& uses = blocks_[number].uses;
  if (!Contains(uses, stream)) uses.push_back(stream);
}

// `stream` waits for every use of the block.
bool Job::OrderUses(int number, int stream) {
  if (blocks_[number].lost_use) SynchronizeContext(blocks_[number].context);
  if (blocks_[number].lost_use || !Visible(number, stream)) return false;
  for (const int use : std::vector<int>(blocks_[number].uses)) {
    if (!Edge(use, stream)) return false;
  }
  return true;
}

bool Job::FreeAsync(const Block& block, const Stream& stream) {
  if (block.how == How::kHotpack) {
    simgpuBlockReturned(block.address, stream.handle);
    if (Ok(static_cast<CUresult>(Hotpack().free(reinterpret_cast<void*>(block.address), stream.handle)))) return true;
    simgpuBlockKept(block.address);
    return false;
  }
  if (stream.kind == Kind::kPerThread && random_->Chance(500)) return Ok(cuMemFreeAsync_ptsz(block.address, nullptr));
  return Ok(cuMemFreeAsync(block.address, stream.handle));
}

bool Job::Release(int number, int stream, bool async) {
  if (!Live(number) || blocks_[number].pins > 0) return false;
  const int context = blocks_[number].context;
  const bool plain = blocks_[number].how == How::kPlain || blocks_[number].how == How::kPitch;
  if (!async && !plain &&
      (blocks_[number].home != kNone || !blocks_[number].uses.empty() || blocks_[number].lost_use)) {
    SynchronizeContext(context);
    const Block& block = blocks_[number];
    if (block.home != kNone || !block.uses.empty() || block.lost_use) return false;
  }
  if (!async && blocks_[number].how == How::kHotpack) {
    async = true;
    stream = stream != kNone ? stream : SomeStream(context, random_->Next());
  }
  if (!async) {
    if (!UnsafeCallAllowed()) return false;
    // Now and then from a thread whose current context is another.
    if (!Enter(random_->Chance(50) ? SomeContext() : context)) return false;
    ++counts_.operations;
    if (!Ok(cuMemFree_v2(blocks_[number].address))) return false;
    Forget(number);
    return true;
  }
  if (stream == kNone || streams_[stream].context != context || !Usable(stream) || !Enter(context)) return false;
  if (!OrderUses(number, stream)) return false;
  ++counts_.operations;
  if (!FreeAsync(blocks_[number], streams_[stream])) return false;
  Forget(number);
  return true;
}

CUdeviceptr Job::GiveAway(int number) {
  if (!Live(number)) return 0;
  const Block block = blocks_[number];
  if (block.how != How::kPlain || block.pins > 0) return 0;
  Forget(number);
  return block.address;
}

bool Job::FreeForeign(int context, CUdeviceptr address) {
  if (!UnsafeCallAllowed() || !Enter(context)) return false;
  ++counts_.operations;
  return Ok(cuMemFree_v2(address));
}

void Job::ReleaseAll() {
  for (int round = 0; round < 2; ++round) {  // blocks left over by a failing call
    while (!captures_.empty()) {
      const size_t before = captures_.size();
      EndCapture();
      if (captures_.size() == before) return;  // another worker's: it ends its own
    }
    for (size_t i = graphs_.size(); i-- > 0;) DestroyGraphAt(i);
    for (const int block : std::vector<int>(live_)) {
      const int stream = SomeStream(blocks_[block].context, random_->Next());
      if (stream == kNone || !random_->Chance(500) || !Release(block, stream, true)) Release(block, kNone, false);
    }
  }
}

// ---- work

bool Job::Submit(const int* blocks, int count, int number, bool node) {
  const Stream& stream = streams_[number];
  const Block& first = blocks_[blocks[0]];
  const uint64_t at = random_->Below(first.bytes),
                 bytes = std::min<uint64_t>(first.bytes - at, 1 + random_->Below(256));
  static const char host[256] = {};
  const bool per_thread = stream.kind == Kind::kPerThread && random_->Chance(500);
  switch (random_->Int(node ? 8 : 9)) {
    case 0:
      return Ok(per_thread ? cuMemsetD8Async_ptsz(first.address + at, 0, bytes, nullptr)
                           : cuMemsetD8Async(first.address + at, 0, bytes, stream.handle));
    case 1:
      return Ok(per_thread ? cuMemcpyHtoDAsync_v2_ptsz(first.address + at, host, bytes, nullptr)
                           : cuMemcpyHtoDAsync_v2(first.address + at, host, bytes, stream.handle));
    case 2: {
      const Block& last = blocks_[blocks[count - 1]];
      return Ok(
          cuMemcpyDtoDAsync_v2(first.address, last.address, std::min<uint64_t>(bytes, last.bytes), stream.handle));
    }
    case 3:  // a library's call: it launches something, and uses more than its launches name
      if (!Ok(cuMemsetD8Async(first.address, 0, 1, stream.handle))) return false;
      simgpuUse(stream.handle, first.address, first.bytes, 1);
      return true;
    case 8: {  // waits for the host
      char answer[256];
      if (stream.kind != Kind::kLegacy || !UnsafeCallAllowed())
        return Ok(cuMemsetD8Async(first.address, 0, 1, stream.handle));
      return Ok(cuMemcpyDtoH_v2(answer, first.address + at, bytes));
    }
    default: {
      const CUfunction kernel = contexts_[stream.context].kernel;
      CUdeviceptr pointers[4] = {};
      void* parameters[4];
      for (int i = 0; i < 4; ++i) {
        if (i < count) pointers[i] = blocks_[blocks[i]].address;
        parameters[i] = &pointers[i];
      }
      if (kernel == nullptr) return Ok(cuMemsetD8Async(first.address, 0, 1, stream.handle));
      return Ok(per_thread ? cuLaunchKernel_ptsz(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr)
                           : cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream.handle, parameters, nullptr));
    }
  }
}

void Job::Use(const int* blocks, int count, int stream) {
  if (stream == kNone || !Usable(stream) || !Enter(streams_[stream].context)) return;
  int usable[4], n = 0;
  for (int i = 0; i < count && n < 4; ++i) {
    if (Live(blocks[i]) && blocks_[blocks[i]].context == streams_[stream].context && Visible(blocks[i], stream)) {
      usable[n++] = blocks[i];
    }
  }
  if (n == 0) return;
  ++counts_.operations;
  ++counts_.uses;
  // It counts as used even if the call says that it failed.
  for (int i = 0; i < n; ++i) NoteUse(usable[i], stream);
  Submit(usable, n, stream, false);
}

void Job::Ask() {
  const int number = SomeBlock();
  if (number == kNone || !Enter(blocks_[number].context)) return;
  const Block& block = blocks_[number];
  ++counts_.operations;
  size_t one = 0, two = 0;
  CUdeviceptr base = 0;
  if (random_->Chance(300)) {
    Ok(cuMemGetInfo_v2(&one, &two));
    return;
  }
  if (!Ok(cuMemGetAddressRange_v2(&base, &one, block.address + random_->Below(block.bytes)))) return;
  if (base != block.address || one < block.bytes) wrong_answers_ = true;
}

}  // namespace property
