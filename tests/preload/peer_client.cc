// A program that copies between two devices by every function that names no contexts, on the simulated device
// (SIMGPU_DEVICES=2, SIMGPU_VALUES=keep). It ends with status 0 if every copy worked and moved the bytes, else with 1
// and a line for each function that failed:
//   peer_client FIRST SECOND    arena or pool: the memory of the first and of the second device
#include <cuda.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define OK(call)                                                                                      \
  do {                                                                                                \
    if (const CUresult ok_result = (call); ok_result != CUDA_SUCCESS) {                               \
      fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, static_cast<int>(ok_result)); \
      exit(2);                                                                                        \
    }                                                                                                 \
  } while (false)

namespace {

constexpr size_t kPitch = 512, kWidth = 300, kRows = 16, kLayers = 4;
constexpr size_t kLayer = kPitch * kRows, kBytes = kLayer * kLayers;

CUcontext contexts[2];
bool failed = false;

CUdeviceptr NewBlock(int device) {
  CUdeviceptr address = 0;
  OK(cuCtxSetCurrent(contexts[device]));
  OK(cuMemAlloc(&address, kBytes));
  return address;
}

// Memory of a pool of the program's own, which hotpack does not serve.
CUdeviceptr NewBlockOfPool(int device) {
  CUdeviceptr address = 0;
  CUmemoryPool pool = nullptr;
  CUmemPoolProps props = {};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  OK(cuCtxSetCurrent(contexts[device]));
  OK(cuMemPoolCreate(&pool, &props));
  OK(cuMemAllocFromPoolAsync(&address, kBytes, pool, nullptr));
  return address;
}

void Write(CUdeviceptr to, int device, const std::vector<uint8_t>& bytes) {
  OK(cuCtxSetCurrent(contexts[device]));
  OK(cuMemcpyHtoD(to, bytes.data(), bytes.size()));
}

std::vector<uint8_t> Read(CUdeviceptr from, int device) {
  std::vector<uint8_t> bytes(kBytes);
  OK(cuCtxSetCurrent(contexts[device]));
  OK(cuMemcpyDtoH(bytes.data(), from, bytes.size()));
  return bytes;
}

struct Memory {
  CUdeviceptr address;
  int device;
};

// What a copy is expected to move: everything, rows of a layer, or a box.
enum class Part { kAll, kPlane, kBox };

struct Way {
  const char* name;
  Part part;
  std::function<CUresult(CUdeviceptr to, CUdeviceptr from, CUstream stream)> copy;
  bool capturable = true;
};

CUDA_MEMCPY2D Plane(CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY2D plane = {};
  plane.srcMemoryType = plane.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  plane.srcDevice = from;
  plane.dstDevice = to;
  plane.srcPitch = plane.dstPitch = kPitch;
  plane.srcY = 2;
  plane.dstY = 3;
  plane.srcXInBytes = 8;
  plane.dstXInBytes = 4;
  plane.WidthInBytes = kWidth;
  plane.Height = kRows - 3;
  return plane;
}

CUDA_MEMCPY3D Box(CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY3D box = {};
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = from;
  box.dstDevice = to;
  box.srcPitch = box.dstPitch = kPitch;
  box.srcHeight = box.dstHeight = kRows;
  box.srcZ = 1;
  box.dstZ = 2;
  box.dstY = 1;
  box.srcXInBytes = 16;
  box.WidthInBytes = kWidth;
  box.Height = kRows - 1;
  box.Depth = kLayers - 2;
  return box;
}

// The bytes of `to` after the copy, by the host.
std::vector<uint8_t> Expected(Part part, std::vector<uint8_t> to, const std::vector<uint8_t>& from) {
  if (part == Part::kAll) return from;
  const CUDA_MEMCPY2D p = Plane(0, 0);
  const CUDA_MEMCPY3D b = Box(0, 0);
  const bool plane = part == Part::kPlane;
  for (size_t z = 0; z < (plane ? 1 : b.Depth); ++z) {
    for (size_t y = 0; y < (plane ? p.Height : b.Height); ++y) {
      const size_t source =
          plane ? (y + p.srcY) * kPitch + p.srcXInBytes : (z + b.srcZ) * kLayer + (y + b.srcY) * kPitch + b.srcXInBytes;
      const size_t target =
          plane ? (y + p.dstY) * kPitch + p.dstXInBytes : (z + b.dstZ) * kLayer + (y + b.dstY) * kPitch + b.dstXInBytes;
      memcpy(&to[target], &from[source], kWidth);
    }
  }
  return to;
}

// Two halves, each with attributes of its own.
CUresult Batch(CUdeviceptr to, CUdeviceptr from, CUstream stream) {
  CUdeviceptr targets[] = {to, to + kBytes / 2}, sources[] = {from, from + kBytes / 2};
  size_t sizes[] = {kBytes / 2, kBytes / 2}, firsts[] = {0, 1};
  CUmemcpyAttributes attributes[2] = {};
  for (CUmemcpyAttributes& each : attributes) each.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  return cuMemcpyBatchAsync(targets, sources, sizes, 2, attributes, firsts, 2, stream);
}

// A function of the driver that this header declares otherwise, or not at all.
template <typename Function>
Function* Versioned(const char* symbol) {
  const auto function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, symbol));
  if (function == nullptr) {
    fprintf(stderr, "%s: not found\n", symbol);
    exit(2);
  }
  return function;
}

// The first versions of batches return the number of the copy that failed. 0 would be the first one's.
CUresult FirstBatch(CUdeviceptr to, CUdeviceptr from, CUstream stream) {
  using Function =
      CUresult(CUdeviceptr*, CUdeviceptr*, size_t*, size_t, CUmemcpyAttributes*, size_t*, size_t, size_t*, CUstream);
  CUdeviceptr targets[] = {to, to + kBytes / 2}, sources[] = {from, from + kBytes / 2};
  size_t sizes[] = {kBytes / 2, kBytes / 2}, first = 0, failing = 0;
  CUmemcpyAttributes attributes = {};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  const auto batch = Versioned<Function>("cuMemcpyBatchAsync");
  const CUresult result = batch(targets, sources, sizes, 2, &attributes, &first, 1, &failing, stream);
  if (result != CUDA_SUCCESS) return result;
  // The second copy has no source.
  sources[1] = 0;
  if (batch(targets, sources, sizes, 2, &attributes, &first, 1, &failing, stream) == CUDA_SUCCESS) exit(2);
  return failing == 1 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

CUDA_MEMCPY3D_BATCH_OP BoxOp(CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY3D_BATCH_OP op = {};
  op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  op.src.op.ptr.ptr = from;
  op.dst.op.ptr.ptr = to;
  op.extent = {kBytes / kLayers, 1, kLayers};
  op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  return op;
}

CUresult BoxBatch(CUdeviceptr to, CUdeviceptr from, CUstream stream) {
  CUDA_MEMCPY3D_BATCH_OP op = BoxOp(to, from);
  return cuMemcpy3DBatchAsync(1, &op, 0, stream);
}

CUresult FirstBoxBatch(CUdeviceptr to, CUdeviceptr from, CUstream stream) {
  using Function = CUresult(size_t, CUDA_MEMCPY3D_BATCH_OP*, size_t*, unsigned long long, CUstream);
  CUDA_MEMCPY3D_BATCH_OP op = BoxOp(to, from);
  size_t failing = 0;
  return Versioned<Function>("cuMemcpy3DBatchAsync")(1, &op, &failing, 0, stream);
}

// CUDA 13.2.
CUresult WithAttributes(CUdeviceptr to, CUdeviceptr from, CUstream stream) {
  using Function = CUresult(CUdeviceptr, CUdeviceptr, size_t, CUmemcpyAttributes*, CUstream);
  CUmemcpyAttributes attributes = {};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  return Versioned<Function>("cuMemcpyWithAttributesAsync")(to, from, kBytes, &attributes, stream);
}

CUresult BoxWithAttributes(CUdeviceptr to, CUdeviceptr from, CUstream stream) {
  using Function = CUresult(CUDA_MEMCPY3D_BATCH_OP*, unsigned long long, CUstream);
  CUDA_MEMCPY3D_BATCH_OP op = BoxOp(to, from);
  return Versioned<Function>("cuMemcpy3DWithAttributesAsync")(&op, 0, stream);
}

CUcontext CurrentContext() {
  CUcontext context = nullptr;
  OK(cuCtxGetCurrent(&context));
  return context;
}

// A copy of one row of `bytes`.
CUDA_MEMCPY3D Line(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  CUDA_MEMCPY3D line = {};
  line.srcMemoryType = line.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  line.srcDevice = from;
  line.dstDevice = to;
  line.srcPitch = line.dstPitch = line.WidthInBytes = bytes;
  line.srcHeight = line.dstHeight = line.Height = line.Depth = 1;
  return line;
}

CUgraphNodeParams ParamsOf(const CUDA_MEMCPY3D& copy) {
  CUgraphNodeParams params = {};
  params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  params.memcpy.copyParams = copy;
  params.memcpy.copyCtx = CurrentContext();
  return params;
}

CUresult Launch(CUgraph graph, CUstream stream) {
  CUgraphExec executable = nullptr;
  OK(cuGraphInstantiate(&executable, graph, 0));
  const CUresult result = cuGraphLaunch(executable, stream);
  OK(cuGraphExecDestroy(executable));
  return result;
}

// A graph of a copy, built by hand. `generic`: by the functions for nodes of all types.
CUresult Node(CUdeviceptr to, CUdeviceptr from, CUstream stream, bool generic) {
  const CUDA_MEMCPY3D box = Box(to, from);
  CUgraphNodeParams params = ParamsOf(box);
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  OK(cuGraphCreate(&graph, 0));
  CUresult result = generic ? cuGraphAddNode(&node, graph, nullptr, nullptr, 0, &params)
                            : cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &box, CurrentContext());
  if (result == CUDA_SUCCESS) result = Launch(graph, stream);
  OK(cuGraphDestroy(graph));
  return result;
}

bool IsOfCurrentDevice(CUdeviceptr address) {
  int device = -1, current = -2;
  OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address));
  OK(cuCtxGetDevice(&current));
  return device == current;
}

// The same. The node's copy is first another one, then one within the device, then the box.
CUresult ChangedNode(CUdeviceptr to, CUdeviceptr from, CUstream stream, bool generic) {
  const CUdeviceptr own = IsOfCurrentDevice(to) ? to : from;
  const CUDA_MEMCPY3D first = Line(to, from, 64), within = Line(own + 64, own, 64), box = Box(to, from);
  const auto change = [generic](CUgraphNode node, const CUDA_MEMCPY3D& copy) {
    CUgraphNodeParams params = ParamsOf(copy);
    return generic ? cuGraphNodeSetParams(node, &params) : cuGraphMemcpyNodeSetParams(node, &copy);
  };
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  OK(cuGraphCreate(&graph, 0));
  CUresult result = cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &first, CurrentContext());
  if (result == CUDA_SUCCESS) result = change(node, within);
  if (result == CUDA_SUCCESS) result = change(node, box);
  if (result == CUDA_SUCCESS) {
    CUDA_MEMCPY3D now = {};
    result = cuGraphMemcpyNodeGetParams(node, &now);
    if (now.WidthInBytes != box.WidthInBytes || now.Height != box.Height || now.Depth != box.Depth) exit(2);
  }
  if (result == CUDA_SUCCESS) result = Launch(graph, stream);
  OK(cuGraphDestroy(graph));
  return result;
}

// A row, which becomes the whole copy in the executable. `changed`: the node's copy was changed before.
CUresult ChangedExecutable(CUdeviceptr to, CUdeviceptr from, CUstream stream, bool generic, bool changed) {
  const CUDA_MEMCPY3D row = Line(to, from, 64), other = Line(to, from, 128), whole = Line(to, from, kBytes);
  CUgraphNodeParams params = ParamsOf(whole);
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec executable = nullptr;
  OK(cuGraphCreate(&graph, 0));
  CUresult result = cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &row, CurrentContext());
  if (result == CUDA_SUCCESS && changed) result = cuGraphMemcpyNodeSetParams(node, &other);
  if (result == CUDA_SUCCESS) OK(cuGraphInstantiate(&executable, graph, 0));
  if (result == CUDA_SUCCESS) {
    result = generic ? cuGraphExecNodeSetParams(executable, node, &params)
                     : cuGraphExecMemcpyNodeSetParams(executable, node, &whole, CurrentContext());
  }
  if (result == CUDA_SUCCESS) result = cuGraphLaunch(executable, stream);
  if (executable != nullptr) OK(cuGraphExecDestroy(executable));
  OK(cuGraphDestroy(graph));
  return result;
}

const Way kAsync[] = {
    {"cuMemcpyAsync", Part::kAll, [](auto to, auto from, auto s) { return cuMemcpyAsync(to, from, kBytes, s); }},
    {"cuMemcpyDtoDAsync", Part::kAll,
     [](auto to, auto from, auto s) { return cuMemcpyDtoDAsync(to, from, kBytes, s); }},
    {"cuMemcpy2DAsync", Part::kPlane,
     [](auto to, auto from, auto s) {
       const CUDA_MEMCPY2D plane = Plane(to, from);
       return cuMemcpy2DAsync(&plane, s);
     }},
    {"cuMemcpy3DAsync", Part::kBox,
     [](auto to, auto from, auto s) {
       const CUDA_MEMCPY3D box = Box(to, from);
       return cuMemcpy3DAsync(&box, s);
     }},
    {"cuMemcpyBatchAsync", Part::kAll, Batch, false},
    {"cuMemcpy3DBatchAsync", Part::kAll, BoxBatch, false},
    {"cuMemcpyBatchAsync, first version", Part::kAll, FirstBatch, false},
    {"cuMemcpy3DBatchAsync, first version", Part::kAll, FirstBoxBatch, false},
    {"cuGraphAddMemcpyNode", Part::kBox, [](auto to, auto from, auto s) { return Node(to, from, s, false); }, false},
    {"cuGraphAddNode", Part::kBox, [](auto to, auto from, auto s) { return Node(to, from, s, true); }, false},
    {"cuGraphMemcpyNodeSetParams", Part::kBox,
     [](auto to, auto from, auto s) { return ChangedNode(to, from, s, false); }, false},
    {"cuGraphNodeSetParams", Part::kBox, [](auto to, auto from, auto s) { return ChangedNode(to, from, s, true); },
     false},
    {"cuGraphExecMemcpyNodeSetParams", Part::kAll,
     [](auto to, auto from, auto s) { return ChangedExecutable(to, from, s, false, false); }, false},
    {"cuGraphExecNodeSetParams", Part::kAll,
     [](auto to, auto from, auto s) { return ChangedExecutable(to, from, s, true, false); }, false},
    {"cuGraphExecMemcpyNodeSetParams of a changed node", Part::kAll,
     [](auto to, auto from, auto s) { return ChangedExecutable(to, from, s, false, true); }, false},
    {"cuMemcpyWithAttributesAsync", Part::kAll, WithAttributes},
    {"cuMemcpy3DWithAttributesAsync", Part::kAll, BoxWithAttributes},
};

const Way kSync[] = {
    {"cuMemcpy", Part::kAll, [](auto to, auto from, auto) { return cuMemcpy(to, from, kBytes); }},
    {"cuMemcpyDtoD", Part::kAll, [](auto to, auto from, auto) { return cuMemcpyDtoD(to, from, kBytes); }},
    {"cuMemcpy2D", Part::kPlane,
     [](auto to, auto from, auto) {
       const CUDA_MEMCPY2D plane = Plane(to, from);
       return cuMemcpy2D(&plane);
     }},
    {"cuMemcpy2DUnaligned", Part::kPlane,
     [](auto to, auto from, auto) {
       const CUDA_MEMCPY2D plane = Plane(to, from);
       return cuMemcpy2DUnaligned(&plane);
     }},
    {"cuMemcpy3D", Part::kBox,
     [](auto to, auto from, auto) {
       const CUDA_MEMCPY3D box = Box(to, from);
       return cuMemcpy3D(&box);
     }},
};

// Runs the copy, alone or as a graph of one, from a stream of `device`.
CUresult Run(const Way& way, const Memory& to, const Memory& from, int device, bool captured) {
  CUstream stream = nullptr;
  OK(cuCtxSetCurrent(contexts[device]));
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  if (captured) OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUresult result = way.copy(to.address, from.address, stream);
  if (captured) {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiate(&executable, graph, 0));
    if (result == CUDA_SUCCESS) result = cuGraphLaunch(executable, stream);
    OK(cuGraphExecDestroy(executable));
    OK(cuGraphDestroy(graph));
  }
  OK(cuStreamSynchronize(stream));
  OK(cuStreamDestroy(stream));
  return result;
}

void Try(const Way& way, const Memory& to, const Memory& from, int device, bool captured) {
  std::vector<uint8_t> old(kBytes, 7), bytes(kBytes);
  for (size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<uint8_t>(i * 31 + i / 251 + static_cast<size_t>(device));
  Write(to.address, to.device, old);
  Write(from.address, from.device, bytes);
  const CUresult result = Run(way, to, from, device, captured);
  const bool right = result == CUDA_SUCCESS && Read(to.address, to.device) == Expected(way.part, old, bytes);
  if (right) return;
  failed = true;
  printf("%s from device %d to %d by device %d%s: %s\n", way.name, from.device, to.device, device,
         captured ? " in a capture" : "", result == CUDA_SUCCESS ? "wrong bytes" : "refused");
}

void TryAll(const Memory& to, const Memory& from) {
  for (int device = 0; device < 2; ++device) {
    for (const Way& way : kAsync) {
      Try(way, to, from, device, false);
      if (way.capturable) Try(way, to, from, device, true);
    }
    for (const Way& way : kSync) Try(way, to, from, device, false);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  OK(cuInit(0));
  for (int i = 0; i < 2; ++i) OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
  Memory memory[2];
  for (int i = 0; i < 2; ++i) {
    const bool pool = strcmp(argv[1 + i], "pool") == 0;
    memory[i] = {pool ? NewBlockOfPool(i) : NewBlock(i), i};
  }
  TryAll(memory[1], memory[0]);
  TryAll(memory[0], memory[1]);
  if (strcmp(argv[1], "arena") == 0) TryAll({NewBlock(0), 0}, memory[0]);  // within a device, by the other's streams
  return failed ? 1 : 0;
}
