// Abseil's B-trees without a library of Abseil, also under AddressSanitizer.
//
// There a B-tree checks its iterators and reports by Abseil's logging library. On some systems that library is not
// made for shared libraries, so it is no part of ours. The headers that B-trees share with other containers of Abseil
// are included as they are.
#pragma once

#include "absl/base/config.h"
#include "absl/container/internal/container_memory.h"
#include "absl/container/internal/layout.h"
#include "absl/strings/cord.h"

#ifdef ABSL_HAVE_ADDRESS_SANITIZER
#undef ABSL_HAVE_ADDRESS_SANITIZER
#define HOTPACK_ADDRESS_SANITIZER
#endif

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"

#ifdef HOTPACK_ADDRESS_SANITIZER
#undef HOTPACK_ADDRESS_SANITIZER
#define ABSL_HAVE_ADDRESS_SANITIZER 1
#endif
