// The name that was probably meant.
#pragma once

#include <string>
#include <vector>

namespace hotpack {

// Returns the name with the least edit distance to `text` (insertions, deletions, replacements, swapped neighbours), of
// equal ones the first. Empty if none is near enough to be meant: a third of the text's length, at most 3, or a name
// that begins with a text of 3 characters or more. O(names · length²).
std::string NearestName(const std::string& text, const std::vector<std::string>& names);

}  // namespace hotpack
