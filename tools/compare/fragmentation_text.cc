#include "tools/compare/fragmentation_text.h"

#include <algorithm>
#include <cstdio>

namespace hotpack {
namespace {

std::string MiBText(uint64_t bytes) {
  char text[32];
  snprintf(text, sizeof(text), "%.1f", static_cast<double>(bytes) / 1048576.0);
  return text;
}

const PeerResult* RowOf(const Comparison& comparison, const char* name) {
  for (const PeerResult& row : comparison.peers) {
    if (row.name == name && !row.out_of_memory) return &row;
  }
  return nullptr;
}

// Returns "hotpack gives back 52.0", or that it holds more.
std::string GivesBack(const char* who, const char* verb, const char* more, uint64_t bytes, uint64_t pytorch) {
  if (bytes > pytorch) return std::string(who) + " " + more + " " + MiBText(bytes - pytorch) + " more";
  return std::string(who) + " " + verb + " back " + MiBText(pytorch - bytes);
}

bool HoldsNoMore(const PeerResult& row, const PeerResult& than) {
  return row.reserved_peak <= than.reserved_peak && row.smallest.bytes <= than.smallest.bytes;
}

}  // namespace

std::string FragmentationText(const Comparison& comparison) {
  const PeerResult *pytorch = RowOf(comparison, "pytorch"), *expandable = RowOf(comparison, "pytorch-expandable");
  if (pytorch == nullptr || comparison.hotpack.out_of_memory) return "";
  const uint64_t held = pytorch->reserved_peak, live = std::min(comparison.live_peak, held);
  std::string text = "of " + MiBText(held) + " MiB that PyTorch's caching allocator holds, " + MiBText(live) +
                     " are live: " + MiBText(held - live) + " are fragmentation; ";
  if (expandable != nullptr) {
    text += GivesBack("expandable segments", "give", "hold", expandable->reserved_peak, held) + ", ";
  }
  text += GivesBack("hotpack", "gives", "holds", comparison.hotpack.reserved_peak, held);
  if (expandable != nullptr && HoldsNoMore(*expandable, comparison.hotpack)) {
    text +=
        "\nexpandable segments hold no more than hotpack here: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True is "
        "enough";
  }
  return text;
}

}  // namespace hotpack
