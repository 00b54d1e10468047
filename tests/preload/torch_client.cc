// Uses libhotpack_torch.so as PyTorch does, on the simulated device. torch_client MODE
#include <cuda.h>
#include <unistd.h>

#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hotpack.h"
#include "preload/torch/hotpack_torch.h"
#include "tests/preload/client_api.h"
#include "tests/preload/torch_pools.h"

namespace {

constexpr size_t kMiB = 1 << 20;

hotpack_torch_stats Stats(int device = 0) {
  hotpack_torch_stats stats = {};
  CHECK(hotpack_torch_get_stats(device, &stats, sizeof(stats)) == 0);
  return stats;
}

void Use(CUstream stream, void* block, size_t bytes) {
  OK(cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(block), 0, bytes, stream));
}

void Figures() {
  CHECK(hotpack_torch_malloc(0, 0, nullptr) == nullptr);
  void* small = hotpack_torch_malloc(1000, 0, nullptr);
  void* large = hotpack_torch_malloc(3 * kMiB, 0, nullptr);
  hotpack_torch_stats stats = Stats();
  CHECK(stats.allocation[0].current == 2 && stats.allocation[1].current == 1 && stats.allocation[2].current == 1);
  CHECK(stats.allocated_bytes[1].current == 1024 && stats.requested_bytes[1].current == 1000);
  CHECK(stats.allocated_bytes[0].current == 3 * kMiB + 1024);
  CHECK(stats.reserved_bytes.current >= 3 * kMiB + 1024 && stats.segment.current >= 1);
  hotpack_torch_free(large, 3 * kMiB, 0, nullptr);
  stats = Stats();
  CHECK(stats.allocated_bytes[0].current == 1024 && stats.allocated_bytes[0].peak == 3 * kMiB + 1024);
  CHECK(stats.allocated_bytes[0].allocated - stats.allocated_bytes[0].freed == 1024 && stats.allocation[2].freed == 1);
  hotpack_torch_reset();
  CHECK(hotpack_torch_reset_peak(0) == 0 && hotpack_torch_reset_accumulated(0) == 0);
  stats = Stats();
  CHECK(stats.allocated_bytes[0].peak == 1024 && stats.allocated_bytes[0].allocated == 0);
  CHECK(stats.reserved_bytes.current == 2 * kMiB && stats.reserved_bytes.peak == 2 * kMiB);
  size_t bytes = 0;
  CHECK(hotpack_torch_base_alloc(static_cast<char*>(small) + 700, &bytes) == small && bytes == 1024);
  hotpack_torch_free(small, 1000, 0, nullptr);
  CHECK(hotpack_torch_get_stats(64, &stats, sizeof(stats)) == -1 && hotpack_torch_reset_peak(-1) == -1);
}

void OutOfMemory() {
  std::string text;
  try {
    hotpack_torch_malloc(ssize_t{1} << 50, 0, nullptr);
  } catch (const std::runtime_error& error) {
    text = error.what();
  }
  CHECK(text.find("CUDA out of memory. Tried to allocate 1048576.00 GiB. GPU 0 has a total capacity of ") == 0);
  CHECK(text.find("is free. hotpack: out of memory on device 0: ") != std::string::npos);
  CHECK(Stats().num_ooms == 1 && Stats().allocation[0].current == 0);
  hotpack_torch_memory_fraction(0.001, 0);  // of 16 GiB: 16 MiB
  CHECK(Stats().fraction == 0.001);
  void* block = hotpack_torch_malloc(12 * kMiB, 0, nullptr);
  text.clear();
  try {
    hotpack_torch_malloc(12 * kMiB, 0, nullptr);
  } catch (const std::runtime_error& error) {
    text = error.what();
  }
  CHECK(text.find("is beyond the limit of 16 MiB set for the process") != std::string::npos);
  CHECK(Stats().reserved_bytes.current <= 17 * kMiB);
  hotpack_torch_memory_fraction(1, 0);
  void* other = hotpack_torch_malloc(12 * kMiB, 0, nullptr);
  hotpack_torch_free(other, 12 * kMiB, 0, nullptr);
  hotpack_torch_free(block, 12 * kMiB, 0, nullptr);
}

struct Held {
  void* pointer;
  size_t bytes;
  CUstream stream;
};

// Random requests and releases on several streams; each block is used on its own stream, some on another one too.
void Random(uint64_t seed, const std::vector<CUstream>& streams, int operations, std::vector<Held>* held) {
  std::mt19937_64 random(seed);
  const auto draw = [&random](size_t n) { return static_cast<size_t>(random() % n); };
  for (int i = 0; i < operations; ++i) {
    if (held->size() < 30 && draw(2) == 0) {
      const size_t bytes = 512 + draw(3 * kMiB);
      CUstream stream = streams[draw(streams.size())];
      void* block = hotpack_torch_malloc(static_cast<ssize_t>(bytes), 0, stream);
      Use(stream, block, bytes);
      if (draw(4) == 0) {
        CUstream other = streams[draw(streams.size())];
        CUevent ready = nullptr;  // as a program orders its own work
        OK(cuEventCreate(&ready, 0));
        OK(cuEventRecord(ready, stream));
        OK(cuStreamWaitEvent(other, ready, 0));
        OK(cuEventDestroy(ready));
        hotpack_torch_record_stream(block, other);
        Use(other, block, bytes);
      }
      held->push_back({block, bytes, stream});
    } else if (!held->empty()) {
      std::swap((*held)[draw(held->size())], held->back());
      hotpack_torch_free(held->back().pointer, static_cast<ssize_t>(held->back().bytes), 0, held->back().stream);
      held->pop_back();
    }
  }
  for (const Held& block : *held) hotpack_torch_free(block.pointer, static_cast<ssize_t>(block.bytes), 0, block.stream);
  held->clear();
}

std::vector<CUstream> MakeStreams(int count) {
  std::vector<CUstream> streams = {nullptr};
  for (int i = 0; i < count; ++i) {
    CUstream stream = nullptr;
    OK(cuStreamCreate(&stream, i % 2 == 0 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
    streams.push_back(stream);
  }
  return streams;
}

void Streams(uint64_t seed) {
  // One stream, of which nothing is noted; then a request names another.
  void* block = hotpack_torch_malloc(kMiB, 0, nullptr);
  Use(nullptr, block, kMiB);
  hotpack_torch_free(block, kMiB, 0, nullptr);
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(hotpack_torch_malloc(kMiB, 0, stream) == block);
  Use(stream, block, kMiB);
  hotpack_torch_free(block, kMiB, 0, stream);
  std::vector<Held> held;
  Random(seed, MakeStreams(3), 20'000, &held);
}

void Threads(uint64_t seed) {
  const std::vector<CUstream> streams = MakeStreams(4);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&streams, seed, i] {  // no context is current here: the allocator sees to it
      std::vector<Held> held;
      Random(seed + i, streams, 4'000, &held);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A captured program's memory is reserved until the pool is released. Blocks released meanwhile wait.
void Pools() {
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  void* before = hotpack_torch_malloc(kMiB, 0, stream);
  Use(stream, before, kMiB);
  const PoolId id{1, 0};
  const auto mine = [stream](CUstream asked) { return asked == stream; };
  hotpack_torch_begin_allocate_to_pool(0, id, mine);
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  void* first = hotpack_torch_malloc(5 * kMiB, 0, stream);
  Use(stream, first, 5 * kMiB);
  void* elsewhere = hotpack_torch_malloc(5 * kMiB, 0, nullptr);  // another stream's is not the pool's
  CHECK(elsewhere < first || elsewhere >= static_cast<char*>(first) + 6 * kMiB);
  hotpack_torch_free(first, 5 * kMiB, 0, stream);
  void* again = hotpack_torch_malloc(4 * kMiB, 0, stream);
  CHECK(again == first);                        // in captured order
  hotpack_torch_free(before, kMiB, 0, stream);  // the capture may still use it
  CUgraph graph = nullptr;
  OK(cuStreamEndCapture(stream, &graph));
  hotpack_torch_end_allocate_to_pool(0, id);
  hotpack_torch_free(again, 4 * kMiB, 0, stream);
  hotpack_torch_segment segment = {};
  CHECK(hotpack_torch_segments(0, &segment, 1) == 1 && segment.bytes == 6 * kMiB && segment.live == 0);
  CHECK(segment.pool[0] == 1 && segment.address == reinterpret_cast<uint64_t>(first));
  for (int i = 0; i < 100; ++i) {  // no other block gets it
    void* block = hotpack_torch_malloc(kMiB, 0, stream);
    CHECK(block < first || block >= static_cast<char*>(first) + 6 * kMiB);
    if (i % 2 == 0) hotpack_torch_free(block, kMiB, 0, stream);
  }
  CHECK(Stats().reserved_bytes.current >= 56 * kMiB);
  // A segment that the preload gave counts once, as the arena's.
  hotpack_memory memory = {};
  CHECK(hotpack_get_memory(0, &memory, sizeof(memory)) == 0);
  std::vector<hotpack_extent> runs(hotpack_list_mapped(0, nullptr, 0));
  CHECK(hotpack_list_mapped(0, runs.data(), runs.size()) == runs.size());
  bool inside = false;
  for (const hotpack_extent& run : runs)
    inside |= segment.address >= run.address && segment.address - run.address < run.bytes;
  CHECK(Stats().reserved_bytes.current == memory.reserved + (inside ? 0 : segment.bytes));
  CHECK(Stats().segment.current == runs.size() + (inside ? 0 : 1));
  hotpack_torch_release_pool(0, id);
  CHECK(hotpack_torch_segments(0, nullptr, 0) == 0);
  // A pool without a capture, with a block that outlives it.
  hotpack_torch_begin_allocate_to_pool(0, {0, 7}, nullptr);
  void* kept = hotpack_torch_malloc(kMiB, 0, stream);
  void* used = hotpack_torch_malloc(kMiB, 0, stream);
  hotpack_torch_record_stream(used, nullptr);
  hotpack_torch_free(used, kMiB, 0, stream);
  CHECK(hotpack_torch_malloc(kMiB, 0, stream) != used);  // another stream may be using it
  hotpack_torch_end_allocate_to_pool(0, {0, 7});
  hotpack_torch_release_pool(0, {0, 7});
  CHECK(hotpack_torch_segments(0, nullptr, 0) >= 1);
  hotpack_torch_free(kept, kMiB, 0, stream);
  hotpack_torch_free(elsewhere, 5 * kMiB, 0, nullptr);
  hotpack_torch_end_allocate_to_pool(0, {9, 9});  // was never begun
  hotpack_torch_release_pool(0, {9, 9});
}

bool Refuses(size_t bytes, int device, CUstream stream) try {
  hotpack_torch_free(hotpack_torch_malloc(static_cast<ssize_t>(bytes), device, stream), static_cast<ssize_t>(bytes),
                     device, stream);
  return false;
} catch (const std::runtime_error&) {
  return true;
}

// A pool is held to the process's limit, and a request that it cannot serve does not break the capture.
void PoolsWithoutRoom() {
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  void* before = hotpack_torch_malloc(kMiB, 0, stream);  // 2 MiB of the arena
  hotpack_torch_memory_fraction(0.001, 0);               // of 16 GiB: 16 MiB
  hotpack_torch_begin_allocate_to_pool(0, {1, 0}, [stream](CUstream asked) { return asked == stream; });
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(Refuses(20 * kMiB, 0, stream) && !Refuses(8 * kMiB, 0, stream) && Refuses(12 * kMiB, 0, stream));
  CUgraph graph = nullptr;
  OK(cuStreamEndCapture(stream, &graph));
  CHECK(Stats().reserved_bytes.current <= 17 * kMiB && Stats().num_ooms == 2);
  hotpack_torch_memory_fraction(1, 0);
  CHECK(!Refuses(12 * kMiB, 0, stream));
  hotpack_torch_end_allocate_to_pool(0, {1, 0});
  hotpack_torch_release_pool(0, {1, 0});
  hotpack_torch_free(before, kMiB, 0, stream);
}

void History() {
  void* unknown = hotpack_torch_malloc(100, 0, nullptr);
  CHECK(hotpack_torch_record(4, 0) == 0);
  void* a = hotpack_torch_malloc(1000, 0, nullptr);
  void* b = hotpack_torch_malloc(2000, 0, nullptr);
  hotpack_torch_free(a, 1000, 0, nullptr);
  hotpack_torch_event events[8] = {};
  CHECK(hotpack_torch_events(events, 8) == 3 && events[0].action == HOTPACK_TORCH_ALLOC && events[0].bytes == 1000);
  CHECK(events[2].action == HOTPACK_TORCH_FREE && events[2].address == reinterpret_cast<uint64_t>(a));
  CHECK(events[0].time_us > 1'600'000'000'000'000 && events[2].time_us >= events[0].time_us);
  CHECK(hotpack_torch_live(events, 8) == 1 && events[0].address == reinterpret_cast<uint64_t>(b));
  hotpack_torch_mark_snapshot(0);
  void* c = hotpack_torch_malloc(3000, 0, nullptr);
  CHECK(hotpack_torch_events(events, 1) == 4);  // the first has gone; only one is written
  CHECK(hotpack_torch_events(events, 8) == 4 && events[0].bytes == 2000 && events[3].bytes == 3000);
  CHECK(hotpack_torch_record(2, 0) == 0 && hotpack_torch_events(events, 8) == 2 && events[1].bytes == 3000);
  CHECK(hotpack_torch_record(8, 1) == 0 && hotpack_torch_events(events, 8) == 0);
  CHECK(Refuses(size_t{1} << 50, 0, nullptr));
  CHECK(hotpack_torch_events(events, 8) == 1 && events[0].action == HOTPACK_TORCH_OOM &&
        events[0].bytes == size_t{1} << 50);
  CHECK(events[0].address > 15'000 * kMiB && events[0].address < 16'384 * kMiB);  // that is free
  hotpack_torch_free(b, 2000, 0, nullptr);
  CHECK(hotpack_torch_record(0, 0) == 0 && hotpack_torch_events(events, 8) == 0 && hotpack_torch_live(events, 8) == 0);
  hotpack_torch_free(c, 3000, 0, nullptr);
  hotpack_extent blocks[4] = {};
  CHECK(hotpack_list_blocks(0, blocks, 4) == 1 && blocks[0].address == reinterpret_cast<uint64_t>(unknown));
  CHECK(blocks[0].bytes == 512 && blocks[0].planned == 0 && hotpack_list_mapped(0, blocks, 4) == 1);
  hotpack_torch_free(unknown, 100, 0, nullptr);
}

// A loop of marked iterations is served by script, whichever of the libraries serves it.
void Loop() {
  hotpack_stats stats = {};
  for (int step = 0; step < 20; ++step) {
    std::vector<void*> blocks;
    for (int i = 0; i < 40; ++i) blocks.push_back(hotpack_torch_malloc(1000 * (i + 1), 0, nullptr));
    for (int i = 0; i < 40; ++i) hotpack_torch_free(blocks[static_cast<size_t>(i)], 1000 * (i + 1), 0, nullptr);
    hotpack_step();
    CHECK(hotpack_wait_plan(10'000) == 1);
  }
  CHECK(hotpack_get_stats(&stats, sizeof(stats)) == 0);
  CHECK(stats.requests == 800 && stats.planned >= 600 && stats.planned_steady == stats.requests_steady);
  hotpack_extent blocks[4] = {};
  void* block = hotpack_torch_malloc(1000, 0, nullptr);
  CHECK(hotpack_list_blocks(0, blocks, 4) == 1 && blocks[0].planned == 1 && blocks[0].bytes == 1024);
  hotpack_torch_free(block, 1000, 0, nullptr);
}

// A device's blocks may be used by kernels of the others, and a block goes back wherever its thread has been since.
void Devices() {
  CHECK(hotpack_torch_malloc(1000, 0, nullptr) != nullptr);
  void* second = hotpack_torch_malloc(1000, 1, nullptr);
  CUdevice device = -1;
  OK(cuCtxGetDevice(&device));
  CHECK(device == 0 && Stats(1).allocation[0].current == 1 && Stats(0).allocation[0].current == 1);
  unsigned long long access = 0;
  CUmemLocation location = {};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = 0;
  OK(cuMemGetAccess(&access, &location, reinterpret_cast<CUdeviceptr>(second)));
  CHECK(access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  hotpack_torch_free(second, 1000, 1, nullptr);
  CHECK(Stats(1).allocation[0].current == 0);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 3);
  const std::string mode = argv[1];
  const uint64_t seed = strtoull(argv[2], nullptr, 10);
  OK(cuInit(0));
  hotpack_torch_init(2);
  if (mode == "threads" || mode == "pools" || mode == "full") {  // streams come before the first request
    CUcontext context = nullptr;
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
  }
  if (mode == "figures") Figures();
  if (mode == "oom") OutOfMemory();
  if (mode == "streams") Streams(seed);
  if (mode == "threads") Threads(seed);
  if (mode == "pools") Pools();
  if (mode == "full") PoolsWithoutRoom();
  if (mode == "history") History();
  if (mode == "loop") Loop();
  if (mode == "devices") Devices();
  printf("done\n");
  return 0;
}
