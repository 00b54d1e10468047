// Call stacks of requests as text that leads to the user's line.
#pragma once

#include <string>
#include <string_view>

namespace hotpack {

// A stack has one line per frame, the innermost first: "function (file:line)" (profiler/notes.h). O(length), both.

// Returns the stack for reading: Python frames first, then the others. The frames of the recorder and of the allocator
// are left out, and so are numbers behind a library's name, which are byte offsets. All frames if only such were left.
std::string ReadableStack(std::string_view stack);

// Returns the line that asked, such as "leak.py:6 (train)": the innermost Python frame outside of installed packages,
// else the innermost Python frame, else the function of an autograd node ("...AddmmBackward0::apply"), else that of the
// innermost frame that ReadableStack() keeps; functions without parameters. Empty without frames.
std::string SourceLine(std::string_view stack);

}  // namespace hotpack
