// Parameters of which the kernel reads a part, as PyTorch's kernels for lists of tensors. See checker_cases.h and
// simgpu/driver/tensor_lists.h.
#include "tests/simgpu/checker_cases.h"

namespace simgpu_test {
namespace {

// Two tensors in three blocks, in each of two lists.
template <int kSlots, int kBlocks, typename Index>
struct Lists {
  uint64_t addresses[2][kSlots] = {{arena + 2 * kPage, arena + 2 * kPage + 8}, {arena + 2 * kPage, arena + 2 * kPage}};
  int64_t sizes[kSlots] = {};
  Index block_to_tensor[kBlocks] = {0, 1, 1};
  int32_t block_to_chunk[kBlocks] = {};
  int32_t start = 0;
};
using ListsOfCuda12 = Lists<64, 320, uint8_t>;
using ListsOfCuda13 = Lists<448, 2240, uint16_t>;

struct ScalarLists {
  uint64_t addresses[96] = {arena + 2 * kPage, arena + 2 * kPage + 8};
  int64_t sizes[96] = {};
  float scalars[96] = {};
  uint8_t block_to_tensor[320] = {0, 1, 1};
  int32_t block_to_chunk[320] = {};
};

struct Fused {
  uint64_t addresses[4][252] = {};
  int64_t sizes[252] = {};
  uint64_t steps[252] = {arena + 2 * kPage, arena + 2 * kPage + 8};
  uint16_t block_to_tensor[2240] = {0, 1, 1};
  int32_t block_to_chunk[2240] = {};
  int32_t start = 0;
};

struct Concatenated {
  uint64_t addresses[64] = {arena + 2 * kPage, arena + 2 * kPage + 8};
  uint32_t sizes[64 * 3] = {};
  bool contiguous[64] = {};
  uint32_t strides[64][8] = {};
};

constexpr const char* NameOf(const ListsOfCuda12*) { return "_Z5applyI18TensorListMetadataILi2EEE_12"; }
constexpr const char* NameOf(const ListsOfCuda13*) { return "_Z5applyI18TensorListMetadataILi2EEE_13"; }
constexpr const char* NameOf(const ScalarLists*) { return "_Z5applyI28TensorListScalarListMetadataIfLi1EEE"; }
constexpr const char* NameOf(const Fused*) { return "_Z5applyI33FusedOptimizerTensorListMetadataILi4EEE"; }
constexpr const char* NameOf(const Concatenated*) { return "_Z4copyI25CatArrInputTensorMetadataE"; }
static_assert(sizeof(ListsOfCuda12) == 3144 && sizeof(ListsOfCuda13) == 24200 && sizeof(ScalarLists) == 3520 &&
              sizeof(Fused) == 25544 && sizeof(Concatenated) == 3392);

// Three blocks, and two rows of them.
template <typename T>
void Launch(T lists) {
  float factor = 1;
  void* parameters[] = {&lists, &factor};
  MUST(cuLaunchKernel(Kernel(NameOf(&lists)), 3, 2, 1, 1, 1, 1, 0, s2, parameters, nullptr));
}

// A block used on s1 is live, and so is the next one there.
template <typename T>
T Reused() {
  UsedOnce();
  Give(arena, 8192);
  Give(arena + 2 * kPage, 8192);
  return {};
}

// Such a parameter, in which the slot that `slot(table)` returns has the reused block.
template <typename T, typename Table, typename Slot>
T With(Table T::*table, Slot slot) {
  T parameter = Reused<T>();
  slot(parameter.*table) = arena;
  return parameter;
}

}  // namespace

CASE(ListLeftovers) {
  auto old = Reused<ListsOfCuda12>();
  old.addresses[0][2] = old.addresses[1][63] = arena;
  old.sizes[2] = static_cast<int64_t>(arena);
  Launch(old);
  ListsOfCuda13 lists;
  lists.addresses[0][2] = lists.addresses[1][447] = arena;
  Launch(lists);
  ScalarLists scalars;
  scalars.addresses[2] = scalars.addresses[95] = arena;
  Launch(scalars);
  Fused fused;
  fused.addresses[3][2] = fused.steps[2] = arena;
  Launch(fused);
  Concatenated concatenated;
  concatenated.addresses[2] = concatenated.addresses[63] = arena;
  Launch(concatenated);
}
// The last slot that is set.
CASE(ListOfCuda12) {
  Launch(With(&ListsOfCuda12::addresses, [](auto& lists) -> uint64_t& { return lists[1][1]; }));
}
CASE(ListOfCuda13) {
  Launch(With(&ListsOfCuda13::addresses, [](auto& lists) -> uint64_t& { return lists[1][1]; }));
}
CASE(ListOfScalars) {
  Launch(With(&ScalarLists::addresses, [](auto& list) -> uint64_t& { return list[1]; }));
}
CASE(ListOfFusedUpdates) {
  Launch(With(&Fused::addresses, [](auto& lists) -> uint64_t& { return lists[3][1]; }));
}
CASE(ListOfSteps) {
  Launch(With(&Fused::steps, [](auto& list) -> uint64_t& { return list[1]; }));
}
CASE(ListOfConcatenated) {
  Launch(With(&Concatenated::addresses, [](auto& list) -> uint64_t& { return list[1]; }));
}
// A block names a tensor beyond the table: another layout, which is read in full.
CASE(ListNot) {
  auto lists = Reused<ListsOfCuda12>();
  lists.block_to_tensor[2] = 64;
  lists.addresses[0][2] = arena;
  Launch(lists);
}

}  // namespace simgpu_test
