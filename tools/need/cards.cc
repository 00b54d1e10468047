#include "tools/need/cards.h"

namespace hotpack {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

constexpr UnsimulatedMemory kUnsimulated[] = {
    {"CUDA's context and modules", 426 * kMiB, true,
     "unslothai/unsloth-zoo#1053: PyTorch 2.10 for CUDA 13.0, RTX 6000 Ada; about 400 MB by pytorch/pytorch#109888"},
    {"NCCL's buffers, for each group of ranks", 688 * kMiB, false,
     "NVIDIA/nccl#964: A100 with NVLink, more than 2 ranks; 544 MiB with 2"},
};

// From "GPU 0 has a total capacity of 79.11 GiB", rounded down.
constexpr uint64_t Gibibytes(double number) { return static_cast<uint64_t>(number * 1024) * kMiB; }

constexpr Card kCards[] = {
    {"T4", 16, Gibibytes(14.56), "Zheng-Chong/CatVTON#133"},
    {"RTX A4000", 16, Gibibytes(15.61), "DengKaiCQ/VGGT-Long#6"},
    {"A10", 24, Gibibytes(21.99), "zai-org/CogVLM#236"},
    {"RTX 4090", 24, Gibibytes(23.52), "Soul-AILab/SoulX-FlashTalk#5"},
    {"RTX 5090", 32, Gibibytes(31.36), "TrajectoryCrafter/TrajectoryCrafter#20"},
    {"A100 40GB", 40, Gibibytes(39.38), "QwenLM/Qwen3-VL#881"},
    {"L40", 48, Gibibytes(44.40), "QwenLM/Qwen3-VL#2097"},
    {"RTX 6000 Ada", 48, Gibibytes(47.37), "unslothai/unsloth-zoo#1053"},
    {"H100 80GB", 80, Gibibytes(79.11), "vllm-project/vllm#27508"},
    {"A100 80GB", 80, Gibibytes(79.14), "lianqi1008/Control-GIC#6"},
};

}  // namespace

std::span<const UnsimulatedMemory> UnsimulatedMemories() { return kUnsimulated; }

uint64_t UnsimulatedBytes(bool communicates) {
  uint64_t bytes = 0;
  for (const UnsimulatedMemory& part : kUnsimulated) bytes += part.always || communicates ? part.bytes : 0;
  return bytes;
}

std::span<const Card> Cards() { return kCards; }

}  // namespace hotpack
