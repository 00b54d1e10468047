// What of the memory that PyTorch's allocator holds is not in use, in words.
#pragma once

#include <string>

#include "tools/compare/compare_facts.h"

namespace hotpack {

// Returns one sentence, by the most held in the whole run: how much of what PyTorch's caching allocator holds is live,
// how much is fragmentation, and how much of that expandable segments and hotpack give back. A second line, where
// expandable segments hold no more than hotpack. Empty if there is no row of PyTorch's caching allocator, or if that
// row or hotpack's does not fit its capacity. No line break at the end. O(rows). Thread-safe.
std::string FragmentationText(const Comparison& comparison);

}  // namespace hotpack
