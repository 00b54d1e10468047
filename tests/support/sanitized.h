// HOTPACK_SANITIZED: AddressSanitizer or ThreadSanitizer is at work. GCC says so by macros, clang by features.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HOTPACK_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HOTPACK_SANITIZED
#endif
#endif
