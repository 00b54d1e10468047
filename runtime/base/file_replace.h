// Replaces a file as a whole.
#pragma once

#include <cstddef>

namespace hotpack {

// The file at `path` (if a link, the one it leads to) holds `size` bytes of `data` from here on, or, if that fails or
// the process ends meanwhile, what it held before: they are written beside it, made durable (fsync) and renamed. A
// process that is killed in between may leave `path`.tmp.<pid>.<n> behind. Returns 0 or an errno value. Thread-safe; no
// signal is raised (RLIMIT_FSIZE is EFBIG).
int ReplaceFile(const char* path, const void* data, size_t size);

}  // namespace hotpack
