// dlsym, dlvsym and dlopen.
//
// glibc finds out who calls dlsym(RTLD_NEXT), dlsym(RTLD_DEFAULT) and dlopen (its RPATH) by the return address, so these
// must reach the C library with the program's return address in place: they are jumped to, not called. Their answers need
// no change: RTLD_DEFAULT and RTLD_NEXT walk the global scope, in which our exported functions stand where a preload
// stands. With any other handle (dlopen("libcuda.so.1")) the caller does not matter and the answer is looked at.
//
// dlopen loses RTLD_DEEPBIND, which would let the new library bind its driver functions past every preload.
#include <dlfcn.h>

#include "preload/hook_table.h"
#include "preload/elf_symbols.h"
#include "preload/options.h"

extern "C" {

__attribute__((visibility("hidden"))) void* hotpack_dlsym_handle(void* handle, const char* name) {
  void* function = hotpack::RealDlsym()(handle, name);
  if (function == nullptr || name[0] != 'c' || name[1] != 'u' || !hotpack::Enabled()) return function;
  // Jumped to from the exported function, so this is the program's return address.
  return hotpack::Substitute(function, __builtin_return_address(0));
}

__attribute__((visibility("hidden"))) void* hotpack_dlvsym_handle(void* handle, const char* name, const char* version) {
  static const auto real = reinterpret_cast<hotpack::DlvsymFunction>(hotpack::FindInLibc("dlvsym"));
  void* function = real(handle, name, version);
  if (function == nullptr || name[0] != 'c' || name[1] != 'u' || !hotpack::Enabled()) return function;
  return hotpack::Substitute(function, __builtin_return_address(0));
}

__attribute__((visibility("hidden"))) void* hotpack_find_in_libc(const char* name) { return hotpack::FindInLibc(name); }

// What dlopen's flags are masked with: everything but RTLD_DEEPBIND, or everything when hotpack is off.
__attribute__((visibility("hidden"))) int hotpack_dlopen_flags() { return hotpack::Enabled() ? ~RTLD_DEEPBIND : ~0; }

}  // extern "C"

static_assert(RTLD_DEFAULT == nullptr, "the code below takes handles 0 and -1 apart from the others");

// %rax := the C library's function of that name, the arguments in %rdi, %rsi, %rdx kept. Found once.
#define HOTPACK_REAL(name)                                 \
  " movq hotpack_real_" name "(%rip), %rax\n"              \
  " testq %rax, %rax\n"                                    \
  " jne 2f\n"                                              \
  " pushq %rdi\n pushq %rsi\n pushq %rdx\n"                \
  " leaq hotpack_name_" name "(%rip), %rdi\n"              \
  " call hotpack_find_in_libc\n"                           \
  " popq %rdx\n popq %rsi\n popq %rdi\n"                   \
  " movq %rax, hotpack_real_" name "(%rip)\n"              \
  "2:\n"

#define HOTPACK_BEGIN(name)                                          \
  ".section .rodata\n"                                               \
  "hotpack_name_" name ": .asciz \"" name "\"\n"                     \
  ".local hotpack_real_" name "\n"                                   \
  ".comm hotpack_real_" name ", 8, 8\n"                              \
  ".text\n"                                                          \
  ".globl " name "\n"                                                \
  ".type " name ", @function\n"                                      \
  ".balign 16\n" name ":\n"                                          \
  " endbr64\n"

#define HOTPACK_END(name) ".size " name ", . - " name "\n"

// Handles 0 (RTLD_DEFAULT) and -1 (RTLD_NEXT): handle + 1 is at most 1, unsigned.
asm(HOTPACK_BEGIN("dlsym")
    " leaq 1(%rdi), %rax\n"
    " cmpq $1, %rax\n"
    " jbe 1f\n"
    " jmp hotpack_dlsym_handle\n"
    "1:\n" HOTPACK_REAL("dlsym")
    " jmp *%rax\n" HOTPACK_END("dlsym"));

asm(HOTPACK_BEGIN("dlvsym")
    " leaq 1(%rdi), %rax\n"
    " cmpq $1, %rax\n"
    " jbe 1f\n"
    " jmp hotpack_dlvsym_handle\n"
    "1:\n" HOTPACK_REAL("dlvsym")
    " jmp *%rax\n" HOTPACK_END("dlvsym"));

asm(HOTPACK_BEGIN("dlopen")
    " pushq %rdi\n pushq %rsi\n pushq %rdx\n"
    " call hotpack_dlopen_flags\n"
    " popq %rdx\n popq %rsi\n popq %rdi\n"
    " andl %eax, %esi\n" HOTPACK_REAL("dlopen")
    " jmp *%rax\n" HOTPACK_END("dlopen"));
