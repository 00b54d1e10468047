// Scenarios of preload_client: several streams, and captures.
#include <chrono>
#include <thread>
#include <vector>

#include "tests/preload/preload_client.h"

namespace {

// Events recorded and waited for since the last call.
struct Edges {
  long records = Records(), waits = Waits();
  bool Were(long new_records, long new_waits) {
    const bool right = Records() == records + new_records && Waits() == waits + new_waits;
    if (!right) fprintf(stderr, "%ld records, %ld waits\n", Records() - records, Waits() - waits);
    *this = {};
    return right;
  }
};

void Work(CUstream stream) { OK(api.Launch(nullptr, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr)); }

// `events`: each release that no plan covers records an event. Otherwise the request for its memory does.
void SecondStreamWith(bool events) {
  const long at_release = events ? 1 : 0, at_request = events ? 0 : 1;
  Start();
  OK(api.Free(Alloc(4096)));
  CUstream first = nullptr, second = nullptr;
  OK(api.StreamCreate(&first, CU_STREAM_NON_BLOCKING));
  OK(api.StreamCreate(&second, CU_STREAM_NON_BLOCKING));
  Edges edges;
  CHECK(edges.Were(0, 0) && Records() == 0);
  Work(nullptr);
  CHECK(edges.Were(0, 0));
  Work(first);  // its first use: after all that was before
  CHECK(edges.Were(1, 1));
  Work(first);
  CHECK(edges.Were(0, 0));
  const CUdeviceptr a = Alloc(4096);
  OK(api.Free(a));
  CHECK(edges.Were(0, 0));
  CHECK(Alloc(4096) == a);  // for any stream: all wait for all
  CHECK(edges.Were(2, 3));
  CHECK(Alloc(4096) != a);
  CHECK(edges.Were(0, 0));
  OK(api.Free(a));
  CUdeviceptr b = 0;
  OK(api.AllocAsync(&b, 4096, first));  // for one stream: that one waits
  CHECK(b == a && edges.Were(1, 1));
  OK(api.FreeAsync(b, first));
  CHECK(edges.Were(at_release, 0));
  OK(api.AllocAsync(&b, 4096, first));  // stream order is the order
  CHECK(b == a && edges.Were(0, 0));
  OK(api.FreeAsync(b, first));
  CHECK(edges.Were(at_release, 0));
  OK(api.AllocAsync(&b, 4096, second));  // its first use: after what all waited for, too
  CHECK(b == a && edges.Were(at_request, 2));
  OK(api.FreeAsync(b, second));
  CHECK(edges.Were(at_release, 0));
  OK(api.AllocAsync(&b, 4096, first));
  CHECK(b == a && edges.Were(at_request, 1));
  OK(api.FreeAsync(b, first));  // a stream waited for it recently: its event is recorded now, not later
  CHECK(edges.Were(1, 0));
  OK(api.AllocAsync(&b, 4096, second));
  CHECK(b == a && edges.Were(0, 1));
  OK(api.FreeAsync(b, second));
  CHECK(edges.Were(1, 0));
  Work(second);
  OK(api.AllocAsync(&b, 4096, first));
  CHECK(b == a && edges.Were(0, 1));
  OK(api.StreamDestroy(second));
  CHECK(edges.Were(1, 0));
  OK(api.StreamDestroy(first));
  OK(api.Free(b));
  CHECK(edges.Were(1, 0));
  CHECK(Alloc(4096) == a);  // their work may still be running
  CHECK(edges.Were(1, 3) && Syncs() == 0);
}

void SecondStream() { SecondStreamWith(true); }
void SecondStreamLate() { SecondStreamWith(false); }

struct TwoBlocks {
  CUstream stream = nullptr;
  CUdeviceptr a = 0, b = 0;
};

TwoBlocks StreamWithTwoBlocks() {
  Start();
  TwoBlocks blocks;
  OK(api.StreamCreate(&blocks.stream, CU_STREAM_NON_BLOCKING));
  Work(blocks.stream);
  OK(api.AllocAsync(&blocks.a, 4096, blocks.stream));
  OK(api.AllocAsync(&blocks.b, 4096, blocks.stream));
  return blocks;
}

// Work that waits for the host: an event that is recorded after it would wait for the host too, so from the first such
// call on each release has one of its own.
void HostWait() {
  const auto [stream, a, b] = StreamWithTwoBlocks();
  Edges edges;
  OK(api.FreeAsync(a, stream));
  CHECK(edges.Were(0, 0));
  using Wait = CUresult(CUstream, CUdeviceptr, cuuint32_t, unsigned);
  const auto wait = reinterpret_cast<Wait*>(dlsym(RTLD_DEFAULT, "cuStreamWaitValue32_v2"));
  OK(wait(stream, 0x1234, 7, 1));
  CHECK(stub_last_work()[0] == reinterpret_cast<uint64_t>(stream) && stub_last_work()[1] == 0x1234);
  CHECK((stub_last_work()[2] & 0xffffffff) == 7 && (stub_last_work()[3] & 0xffffffff) == 1);
  CHECK(edges.Were(1, 0));  // for the releases before it
  OK(wait(stream, 0x1234, 7, 1));
  CHECK(edges.Were(0, 0));
  OK(api.FreeAsync(b, stream));
  CHECK(edges.Were(1, 0));
}

// Each kind of work of the newest drivers, and the oldest launch: the first use of a stream is seen in any parameter.
void NewestWork() {
  Start();
  OK(api.Free(Alloc(4096)));
  Work(nullptr);
  Edges edges;
  const std::pair<const char*, int> kinds[] = {{"cuMemcpyWithAttributesAsync", 5},
                                               {"cuMemcpyWithAttributesAsync_ptsz", 5},
                                               {"cuMemcpy3DWithAttributesAsync", 3},
                                               {"cuMemcpy3DWithAttributesAsync_ptsz", 3},
                                               {"cuLaunchHostFunc_v2", 1},
                                               {"cuLaunchHostFunc_v2_ptsz", 1},
                                               {"cuLaunchGridAsync", 4}};
  using Function = CUresult(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
  for (const auto& [name, place] : kinds) {
    const auto work = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
    CHECK(work != nullptr);
    CUstream stream = nullptr;
    OK(api.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    uint64_t arguments[5] = {11, 12, 13, 14, 15};
    arguments[place - 1] = reinterpret_cast<uint64_t>(stream);
    const long waits = Waits();
    OK(work(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]));
    CHECK(memcmp(stub_last_work(), arguments, sizeof(arguments)) == 0);
    CHECK(Waits() > waits);  // for the work before
    const long again = Waits();
    OK(work(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]));
    CHECK(Waits() == again);
  }
}

// Waits for another API's semaphore are such work too.
void HostWaitForSemaphore() {
  const auto [stream, a, b] = StreamWithTwoBlocks();
  OK(api.FreeAsync(a, stream));
  Edges edges;
  using Wait = CUresult(const void*, const void*, unsigned, CUstream);
  const auto wait = reinterpret_cast<Wait*>(dlsym(RTLD_DEFAULT, "cuWaitExternalSemaphoresAsync"));
  CHECK(wait != nullptr);
  OK(wait(reinterpret_cast<void*>(1), reinterpret_cast<void*>(2), 1, stream));
  CHECK(stub_last_work()[3] == reinterpret_cast<uint64_t>(stream));
  CHECK(edges.Were(1, 0));  // for the release before it
  OK(api.FreeAsync(b, stream));
  CHECK(edges.Were(1, 0));
}

void CheckWork(CUstream stream) {
  const uint64_t expected[11] = {1, 2, 3, 4, 5, 6, 7, 8, reinterpret_cast<uint64_t>(stream), 10, 11};
  for (int i = 0; i < 11; ++i) {
    const uint64_t got = stub_last_work()[i];
    // 32-bit parameters: the upper half of the register or stack slot is free.
    CHECK((i >= 1 && i <= 7 ? got & 0xffffffff : got) == expected[i]);
  }
}

CUresult LaunchMarked(LaunchFunction* launch, CUstream stream) {
  return launch(reinterpret_cast<CUfunction>(1), 2, 3, 4, 5, 6, 7, 8, stream, reinterpret_cast<void**>(10),
                reinterpret_cast<void**>(11));
}

// No stream is created, yet there is a second one.
void PerThreadHandle() {
  const CUcontext context = Start();
  OK(LaunchMarked(api.Launch, nullptr));
  CheckWork(nullptr);
  OK(api.Free(Alloc(4096)));
  Edges edges;
  OK(LaunchMarked(api.Launch, CU_STREAM_PER_THREAD));
  CheckWork(CU_STREAM_PER_THREAD);
  OK(api.Free(Alloc(4096)));
  CHECK(edges.Were(0, 0));
  const CUdeviceptr a = Alloc(4096);  // all blocking streams wait for the legacy stream, and that for them
  CHECK(edges.Were(1, 1));
  OK(api.Free(a));
  CUdeviceptr b = 0;
  OK(api.AllocAsync(&b, 4096, CU_STREAM_PER_THREAD));
  CHECK(a == b && Records() > 0 && Waits() > 0);
  Edges own;
  OK(api.FreeAsync(b, CU_STREAM_PER_THREAD));
  OK(api.AllocAsync(&b, 4096, CU_STREAM_PER_THREAD));
  CHECK(a == b && own.Were(1, 0));  // at the release
  OK(api.FreeAsync(b, CU_STREAM_PER_THREAD));
  std::thread([&] {  // has another one, and no name for this one
    OK(api.SetCurrent(context));
    OK(api.AllocAsync(&b, 4096, CU_STREAM_PER_THREAD));
  })
      .join();
  CHECK(a == b && own.Were(1, 2) && Syncs() == 0);  // the release's event, and what the new stream comes after
}

void PerThreadVariant() {
  Start();
  OK(api.Free(Alloc(4096)));
  CHECK(Syncs() == 0);
  OK(LaunchMarked(api.LaunchPtsz, nullptr));
  CheckWork(nullptr);
  CHECK(stub_count("cuLaunchKernel_ptsz") == 1);
  OK(api.Free(Alloc(4096)));
  Alloc(4096);
  CHECK(Records() == 1 && Waits() == 1);
  CUstream stream = nullptr;
  OK(api.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  OK(LaunchMarked(api.LaunchPtsz, stream));  // a stream like any other
  CheckWork(stream);
  CHECK(Records() == 2 && Waits() == 2 && Syncs() == 0);
}

void Capture() {
  Start();
  CUstream capturing = nullptr, other = nullptr;
  CUgraph graph = nullptr;
  OK(api.StreamCreate(&capturing, CU_STREAM_NON_BLOCKING));
  OK(api.StreamCreate(&other, CU_STREAM_NON_BLOCKING));
  const CUdeviceptr a = Alloc(4096), b = Alloc(4096);
  const long before = Syncs();
  OK(api.BeginCapture(capturing, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUdeviceptr node = 0, c = 0;
  OK(api.AllocAsync(&node, 4096, capturing));
  CHECK(!Ours(node) && stub_count("cuMemAllocAsync") == 1);  // the graph owns it
  OK(api.FreeAsync(node, capturing));
  OK(api.AllocAsync(&c, 4096, other));
  CHECK(Ours(c));
  CHECK(api.FreeAsync(a, capturing) == CUDA_ERROR_INVALID_VALUE);  // the driver's answer: not of the graph
  OK(api.Free(a));                                                 // put aside
  OK(api.FreeAsync(c, other));                                     // put aside
  CHECK(Alloc(4096) != a);                                         // so it is not handed out
  CHECK(Syncs() == before && stub_syncs_while_capturing() == 0);
  CHECK(Ours(Alloc(64 << 20)));   // growth does not disturb the capture
  std::vector<CUdeviceptr> many;  // more than the quarantine's fixed room
  for (int i = 0; i < 3000; ++i) many.push_back(Alloc(4096));
  for (const CUdeviceptr block : many) OK(api.Free(block));
  CHECK(api.BeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL) != CUDA_SUCCESS);  // refused: does not count
  CHECK(api.EndCapture(other, &graph) != CUDA_SUCCESS);                             // nor this
  CHECK(Syncs() == before);
  OK(api.EndCapture(capturing, &graph));
  CHECK(api.Free(a) == CUDA_ERROR_INVALID_VALUE);  // handed over: no live block any more
  OK(api.Free(b));
  CHECK(stub_syncs_while_capturing() == 0);
  OK(api.BeginCapture(capturing, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(api.StreamDestroy(capturing));  // ends the capture too
  const CUdeviceptr d = Alloc(4096);
  OK(api.Free(d));
  CHECK(api.Free(d) == CUDA_ERROR_INVALID_VALUE);  // not put aside
  CHECK(Syncs() == before && stub_syncs_while_capturing() == 0);
}

// A stream's first use while another thread is about to begin a capture: it waits for the events of that beginning, and
// then for the work before them.
void FirstUseAtACapture() {
  Start();
  static CUstream capturing = nullptr, used = nullptr, late = nullptr;
  OK(api.StreamCreate(&capturing, CU_STREAM_NON_BLOCKING));
  OK(api.StreamCreate(&used, CU_STREAM_NON_BLOCKING));
  OK(api.StreamCreate(&late, CU_STREAM_NON_BLOCKING));
  Work(used);
  OK(api.Free(Alloc(4096)));
  Work(capturing);
  static std::thread other;
  static long waits = 0;
  stub_before("cuEventRecord", [] {  // of the capture's beginning
    waits = Waits();
    other = std::thread([] { Work(late); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  OK(api.BeginCapture(capturing, CU_STREAM_CAPTURE_MODE_RELAXED));
  other.join();
  CHECK(waits > 0 && Waits() == waits + 1);  // the event of when there was one stream
  CHECK(Syncs() == 0 && stub_syncs_while_capturing() == 0);
  CUgraph graph = nullptr;
  OK(api.EndCapture(capturing, &graph));
}

// A capture on the per-thread default stream, the only other stream there is: the switch comes before the capture.
void CapturePerThread() {
  Start();
  CUgraph graph = nullptr;
  const CUdeviceptr a = Alloc(4096);
  OK(api.Free(Alloc(4096)));
  CHECK(Syncs() == 0);
  OK(api.BeginCapturePtsz(nullptr, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(api.Free(a));
  CHECK(Alloc(4096) != a);
  std::thread([&] {
    // This thread's per-thread stream is another one, and it is not the one that captures.
    CHECK(api.EndCapture(CU_STREAM_LEGACY, &graph) != CUDA_SUCCESS);
  }).join();
  CHECK(Alloc(4096) != a);
  OK(api.EndCapturePtsz(nullptr, &graph));
  CHECK(Syncs() == 0 && stub_syncs_while_capturing() == 0);
  CHECK(api.Free(a) == CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

Scenarios StreamScenarios() {
  return {
      {"second_stream", SecondStream},
      {"second_stream_late", SecondStreamLate},
      {"host_wait", HostWait},
      {"host_wait_for_semaphore", HostWaitForSemaphore},
      {"newest_work", NewestWork},
      {"per_thread_handle", PerThreadHandle},
      {"per_thread_variant", PerThreadVariant},
      {"capture", Capture},
      {"capture_per_thread", CapturePerThread},
      {"first_use_at_a_capture", FirstUseAtACapture},
  };
}
