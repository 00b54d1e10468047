// dlsym, dlvsym and dlopen.
//
// 1. glibc identifies the caller of dlsym(RTLD_NEXT), dlsym(RTLD_DEFAULT) and dlopen (its RPATH) by the return address.
//    So these are jumped to, not called, with the program's return address in place.
// 2. Their answers need no change: RTLD_DEFAULT and RTLD_NEXT search the global scope, where a preload's exported
//    functions come first. With any other handle (dlopen("libcuda.so.1")) the caller does not matter, and the answer is
//    checked.
// 3. Exception: dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"), by which an earlier preload finds the next dlsym. This
//    library's dlsym has no version, so the C library would skip it.
// 4. A look-up on a handle goes to the next dlsym in search order, as without hotpack. Another preload may answer it.
// 5. dlopen loses RTLD_DEEPBIND, which would let the new library bind its driver functions past every preload.
#include <dlfcn.h>

#include <cstring>

#include "preload/hooks/doctor.h"
#include "preload/hooks/hook_table.h"
#include "preload/process/elf_symbols.h"
#include "preload/process/options.h"

extern "C" {

__attribute__((visibility("hidden"))) void* hotpack_dlsym_handle(void* handle, const char* name) {
  void* function = hotpack::AskNextDlsym(handle, name);
  if (function == nullptr || name[0] != 'c' || name[1] != 'u' || !hotpack::Enabled()) return function;
  // Jumped to from the exported function, so this is the program's return address.
  return hotpack::Substitute(function, name, __builtin_return_address(0));
}

__attribute__((visibility("hidden"))) void* hotpack_dlvsym_handle(void* handle, const char* name, const char* version) {
  void* function = hotpack::RealDlvsym()(handle, name, version);
  if (function == nullptr || name[0] != 'c' || name[1] != 'u' || !hotpack::Enabled()) return function;
  return hotpack::Substitute(function, name, __builtin_return_address(0));
}

void hotpack_own_dlsym() __asm__("dlsym");
void hotpack_own_dlvsym() __asm__("dlvsym");
void hotpack_own_dlopen() __asm__("dlopen");

// Returns the answer to dlvsym(RTLD_NEXT or RTLD_DEFAULT, ...); null: ask the C library.
__attribute__((visibility("hidden"))) void* hotpack_dlvsym_special(void* handle, const char* name, const char*,
                                                                   const void* caller) {
  if (handle != RTLD_NEXT || strncmp(name, "dl", 2) != 0 || !hotpack::Enabled()) return nullptr;
  void (*own)() = strcmp(name, "dlsym") == 0    ? &hotpack_own_dlsym
                  : strcmp(name, "dlvsym") == 0 ? &hotpack_own_dlvsym
                  : strcmp(name, "dlopen") == 0 ? &hotpack_own_dlopen
                                                : nullptr;
  return own != nullptr && hotpack::IsEarlierObject(caller) ? reinterpret_cast<void*>(own) : nullptr;
}

__attribute__((visibility("hidden"))) void* hotpack_find_in_libc(const char* name) { return hotpack::FindInLibc(name); }

// Returns the mask of dlopen's flags: all but RTLD_DEEPBIND, or all when hotpack is off.
__attribute__((visibility("hidden"))) int hotpack_dlopen_flags(int flags) {
  if (!hotpack::Enabled()) return ~0;
  if ((flags & RTLD_DEEPBIND) != 0) {
    if (hotpack::DoctorFile* file = hotpack::Doctor()) file->deepbind.store(1);
  }
  return ~RTLD_DEEPBIND;
}

}  // extern "C"

static_assert(RTLD_DEFAULT == nullptr, "the code below takes handles 0 and -1 apart from the others");

// %rax := the C library's function of that name; keeps the arguments in %rdi, %rsi, %rdx. Searched once.
#define HOTPACK_REAL(name)                  \
  " movq hotpack_real_" name                \
  "(%rip), %rax\n"                          \
  " testq %rax, %rax\n"                     \
  " jne 2f\n"                               \
  " pushq %rdi\n pushq %rsi\n pushq %rdx\n" \
  " leaq hotpack_name_" name                \
  "(%rip), %rdi\n"                          \
  " call hotpack_find_in_libc\n"            \
  " popq %rdx\n popq %rsi\n popq %rdi\n"    \
  " movq %rax, hotpack_real_" name          \
  "(%rip)\n"                                \
  "2:\n"

#define HOTPACK_BEGIN(name)               \
  ".section .rodata\n"                    \
  "hotpack_name_" name ": .asciz \"" name \
  "\"\n"                                  \
  ".local hotpack_real_" name             \
  "\n"                                    \
  ".comm hotpack_real_" name              \
  ", 8, 8\n"                              \
  ".text\n"                               \
  ".globl " name                          \
  "\n"                                    \
  ".type " name                           \
  ", @function\n"                         \
  ".balign 16\n" name                     \
  ":\n"                                   \
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
    "1:\n"
    " pushq %rdi\n pushq %rsi\n pushq %rdx\n"
    " movq 24(%rsp), %rcx\n"  // the return address
    " call hotpack_dlvsym_special\n"
    " popq %rdx\n popq %rsi\n popq %rdi\n"
    " testq %rax, %rax\n"
    " je 3f\n"
    " ret\n"
    "3:\n" HOTPACK_REAL("dlvsym")
    " jmp *%rax\n" HOTPACK_END("dlvsym"));

asm(HOTPACK_BEGIN("dlopen")
    " pushq %rdi\n pushq %rsi\n pushq %rdx\n"
    " movl %esi, %edi\n"
    " call hotpack_dlopen_flags\n"
    " popq %rdx\n popq %rsi\n popq %rdi\n"
    " andl %eax, %esi\n" HOTPACK_REAL("dlopen")
    " jmp *%rax\n" HOTPACK_END("dlopen"));
