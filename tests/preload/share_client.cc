// A block that is exported and imported again, on the simulated device, with libhotpack.so: share_client SCENARIO
#include <unistd.h>

#include <cstring>
#include <vector>

#include "hotpack.h"
#include "tests/preload/answers_client.h"

namespace {

constexpr size_t kBytes = 5 << 20;

char* NewBlock() {
  void* block = nullptr;
  OK(hotpack_malloc(&block, kBytes, nullptr));
  return static_cast<char*>(block);
}

std::vector<hotpack_piece> Export(const char* at, size_t bytes, uint64_t* offset) {
  size_t count = 0;
  OK(hotpack_export(at, bytes, nullptr, 0, &count, offset));  // opens nothing
  std::vector<hotpack_piece> pieces(count);
  OK(hotpack_export(at, bytes, pieces.data(), count, &count, offset));
  CHECK(count == pieces.size());
  return pieces;
}

void Close(const std::vector<hotpack_piece>& pieces) {
  for (const hotpack_piece& piece : pieces) CHECK(close(piece.descriptor) == 0);
}

size_t OpenFiles() {
  size_t open = 0;
  for (int file = 0; file < 1024; ++file) open += dup2(file, file) == file ? 1 : 0;
  return open;
}

// Each side sees what the other one writes, at the same place of the block.
void Both() {
  char* const block = NewBlock();
  char* const inside = block + (1 << 20);
  uint64_t offset = 0;
  const std::vector<hotpack_piece> pieces = Export(inside, kBytes - (1 << 20), &offset);
  uint64_t bytes = 0;
  for (const hotpack_piece& piece : pieces) bytes += piece.bytes;
  CHECK(offset + kBytes - (1 << 20) <= bytes && pieces[0].device == 0);
  void* imported = nullptr;
  OK(hotpack_import(pieces.data(), pieces.size(), &imported));
  Close(pieces);
  const auto there = reinterpret_cast<CUdeviceptr>(imported) + offset;
  unsigned char seen = 0;
  OK(cuMemsetD8(reinterpret_cast<CUdeviceptr>(inside), 7, 1));
  OK(cuMemcpyDtoH(&seen, there, 1));
  CHECK(seen == 7);
  OK(cuMemsetD8(there + 100, 9, 1));
  OK(cuMemcpyDtoH(&seen, reinterpret_cast<CUdeviceptr>(inside) + 100, 1));
  CHECK(seen == 9);
  OK(hotpack_end_import(imported));
  CHECK(hotpack_end_import(imported) == CUDA_ERROR_INVALID_VALUE);
  OK(hotpack_free(block, nullptr));
}

void Refused() {
  char* const block = NewBlock();
  hotpack_piece piece = {};
  size_t count = 0;
  uint64_t offset = 0;
  void* imported = nullptr;
  const size_t before = OpenFiles();
  CHECK(hotpack_export(block, 0, &piece, 1, &count, &offset) == CUDA_ERROR_INVALID_VALUE);
  CHECK(hotpack_export(block, kBytes + 512, &piece, 1, &count, &offset) == CUDA_ERROR_NOT_FOUND);
  CHECK(hotpack_export(&count, 1, &piece, 1, &count, &offset) == CUDA_ERROR_NOT_FOUND);
  CHECK(hotpack_import(&piece, 0, &imported) == CUDA_ERROR_INVALID_VALUE);
  piece = {2 << 20, 0, 0};  // the standard input
  CHECK(hotpack_import(&piece, 1, &imported) == CUDA_ERROR_INVALID_HANDLE);
  OK(hotpack_free(block, nullptr));
  CHECK(hotpack_export(block, 1, &piece, 1, &count, &offset) == CUDA_ERROR_NOT_FOUND);
  CHECK(OpenFiles() == before);
}

// Each driver call of an import fails once, by SIMGPU_FAIL. Nothing of it stays.
void Failing() {
  char* const block = NewBlock();
  uint64_t offset = 0;
  const std::vector<hotpack_piece> pieces = Export(block, kBytes, &offset);
  const size_t before = OpenFiles();
  void* imported = nullptr;
  CHECK(hotpack_import(pieces.data(), pieces.size(), &imported) != CUDA_SUCCESS);
  OK(hotpack_import(pieces.data(), pieces.size(), &imported));
  OK(hotpack_end_import(imported));
  CHECK(OpenFiles() == before);
  Close(pieces);
  OK(hotpack_free(block, nullptr));
}

// Another file is missing after the first one.
void FailingExport() {
  char* const block = NewBlock();
  size_t count = 0;
  uint64_t offset = 0;
  OK(hotpack_export(block, kBytes, nullptr, 0, &count, &offset));
  CHECK(count > 1);
  std::vector<hotpack_piece> pieces(count);
  const size_t before = OpenFiles();
  CHECK(hotpack_export(block, kBytes, pieces.data(), count, &count, &offset) == CUDA_ERROR_OPERATING_SYSTEM);
  CHECK(OpenFiles() == before + 1);  // the simulated device's own, of the memory that it has shared
  OK(hotpack_free(block, nullptr));
}

// A plain arena is one allocation of the driver.
void Plain() {
  char* const block = NewBlock();
  size_t count = 0;
  uint64_t offset = 0;
  CHECK(hotpack_export(block, kBytes, nullptr, 0, &count, &offset) == CUDA_ERROR_NOT_FOUND);
  OK(hotpack_free(block, nullptr));
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 2);
  CUcontext context = nullptr;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  const std::pair<const char*, void (*)()> scenarios[] = {
      {"both", Both}, {"refused", Refused}, {"failing", Failing}, {"failing_export", FailingExport}, {"plain", Plain}};
  for (const auto& [name, run] : scenarios) {
    if (strcmp(argv[1], name) == 0) {
      run();
      return 0;
    }
  }
  return 2;
}
