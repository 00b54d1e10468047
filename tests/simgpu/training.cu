// A program as nvcc users write it: launches with <<<>>>, structs of pointers, symbols, managed memory, graphs. The
// argument chooses a mistake: "stale" uses a block after its release, "struct" one that only a struct names.
#include <cstring>

#include "tests/simgpu/check.cuh"

struct Layer {
  float* weights;
  int n;
  float* gradient;
};

__constant__ float rate[4];
__device__ float total;
__device__ float table[3] = {1.5f, 2.5f, 3.5f};
__managed__ int steps;

__global__ void Scale(float* x, int n, float k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= k;
}

__global__ void Update(Layer layer, double factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < layer.n) layer.weights[i] -= rate[0] * factor * layer.gradient[i] + total + table[i % 3];
}

// Large enough that nvcc compresses its code.
template <int N>
__global__ void Large(float* x, const float* y, int n) {
  float a = y[threadIdx.x];
#pragma unroll
  for (int i = 0; i < N; ++i) a = a * x[(i * 37 + n) % 1024] + y[(i * 11) % 512] / (1.0f + a * a);
  x[threadIdx.x] = a;
}

int main(int argc, char** argv) {
  const char* mistake = argc > 1 ? argv[1] : "";
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  printf("on %s, %zu MiB\n", properties.name, properties.totalGlobalMem >> 20);

  Layer layer = {nullptr, 1000, nullptr};
  CHECK(cudaMalloc(&layer.weights, layer.n * sizeof(float)));
  CHECK(cudaMalloc(&layer.gradient, layer.n * sizeof(float)));
  const float rates[4] = {0.1f, 0.2f, 0.3f, 0.4f};
  CHECK(cudaMemcpyToSymbol(rate, rates, sizeof rates));
  float back[4] = {}, entries[3] = {};
  CHECK(cudaMemcpyFromSymbol(back, rate, sizeof back));
  CHECK(cudaMemcpyFromSymbol(entries, table, sizeof entries));
  if (memcmp(back, rates, sizeof rates) != 0 || entries[2] != 3.5f) return 4;
  steps = 7;  // managed: the host may
  if (steps != 7) return 4;

  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  for (int i = 0; i < 10; ++i) {
    float* activation = nullptr;
    CHECK(cudaMallocAsync(&activation, 4096, stream));
    Scale<<<4, 256, 0, stream>>>(activation, 1000, 0.5f);
    Large<400><<<1, 64, 0, stream>>>(activation, layer.gradient, i);
    Update<<<4, 256, 0, stream>>>(layer, 0.01);
    CHECK(cudaGetLastError());
    CHECK(cudaFreeAsync(activation, stream));
    if (i == 5 && strcmp(mistake, "stale") == 0) Scale<<<1, 1, 0, stream>>>(activation, 1, 1.0f);
  }
  if (strcmp(mistake, "struct") == 0) {
    // Memory that went back to its pool by cudaFree, unordered, and is used by another stream through a struct.
    Layer late = {nullptr, 1, nullptr};
    cudaStream_t other;
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaMallocAsync(&late.weights, 1 << 20, stream));
    Scale<<<1, 1, 0, stream>>>(late.weights, 1, 1.0f);
    CHECK(cudaFree(late.weights));
    CHECK(cudaMallocAsync(&late.gradient, 1 << 20, other));
    late.weights = nullptr;
    Update<<<1, 1, 0, other>>>(late, 1.0);
    CHECK(cudaDeviceSynchronize());
  }
  Scale<<<0, 1>>>(layer.weights, 1, 1.0f);
  if (cudaGetLastError() == cudaSuccess) return 5;  // an empty grid is refused

  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  Scale<<<4, 256, 0, stream>>>(layer.weights, 1000, 2.0f);
  CHECK(cudaMemsetAsync(layer.gradient, 0, 4000, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaStreamDestroy(stream));

  int blocks = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Scale, 256, 0));
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, Update));
  if (blocks <= 0 || attributes.maxThreadsPerBlock != 1024) return 6;
  CHECK(cudaFree(layer.weights));
  CHECK(cudaFree(layer.gradient));
  CHECK(cudaDeviceSynchronize());
  printf("done\n");
  return 0;
}
