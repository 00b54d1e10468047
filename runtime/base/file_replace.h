// Replaces a file atomically.
#pragma once

#include <cstddef>

namespace hotpack {

// Replaces the contents of the file at `path` (of its target, if it is a link) with `size` bytes of `data`. If that
// fails, or the process ends meanwhile, the file keeps its old contents. The data is written to a temporary file in the
// same folder, made durable (fsync), and renamed. A process that is killed in between may leave `path`.tmp.<pid>.<n>
// behind. Returns 0 or an errno value. Thread-safe. Raises no signal (RLIMIT_FSIZE gives EFBIG).
int ReplaceFile(const char* path, const void* data, size_t size);

}  // namespace hotpack
