// The watched functions. Each checks in a table whether its stream has been used before. Then it jumps to the next
// definition, with every register and the stack unchanged, so no signature is needed. Only a stream's first use makes a
// call (StreamOrder::FirstUse), before its work is submitted.
//
// x86-64 System V calling convention only; another machine needs its own HOTPACK_* fragments.
#include <cuda.h>

#include <cstddef>

#include "preload/hooks/work_list.h"
#include "preload/serve/recorder.h"
#include "preload/streams/stream_order.h"

#if !defined(__x86_64__)
#error "preload/hooks/work_hooks.cc and preload/hooks/dl_hooks.cc are written for x86-64"
#endif

extern "C" {
// Nonzero once any per-thread default stream has been used. The code below writes it without a lock: it changes once,
// from 0 to 1. StreamOrder explains its meaning.
__attribute__((visibility("hidden"))) int hotpack_per_thread_stream_used = 0;
// Nonzero once work that may wait for the host has been submitted.
__attribute__((visibility("hidden"))) int hotpack_host_waits = 0;

// Called by the code below, on the program's thread, before the work is submitted.
__attribute__((visibility("hidden"))) void hotpack_first_use(CUstream stream) noexcept try {
  if (hotpack::Enabled() && !hotpack::IsRecording()) hotpack::Order().FirstUse(stream);
} catch (...) {  // no host memory: the next use tries again
}
__attribute__((visibility("hidden"))) void hotpack_first_host_wait() noexcept try {
  hotpack_host_waits = 1;
  if (hotpack::Enabled() && !hotpack::IsRecording()) hotpack::Order().HostWait();
} catch (...) {
}
}

static_assert(offsetof(CUlaunchConfig, hStream) == 32);
static_assert(kHotpackHandleBits == 12, "the shift below");

// The stream goes to %rax. At entry 8(%rsp) is the seventh argument.
#define HOTPACK_LOAD_ARG1 "movq %rdi, %rax\n"
#define HOTPACK_LOAD_ARG2 "movq %rsi, %rax\n"
#define HOTPACK_LOAD_ARG3 "movq %rdx, %rax\n"
#define HOTPACK_LOAD_ARG4 "movq %rcx, %rax\n"
#define HOTPACK_LOAD_ARG5 "movq %r8, %rax\n"
#define HOTPACK_LOAD_ARG6 "movq %r9, %rax\n"
#define HOTPACK_LOAD_ARG8 "movq 16(%rsp), %rax\n"
#define HOTPACK_LOAD_ARG9 "movq 24(%rsp), %rax\n"
#define HOTPACK_LOAD_CONFIG "xorl %eax, %eax\n testq %rdi, %rdi\n je 1f\n movq 32(%rdi), %rax\n"

// Jumps to 1 to go on, to 2 for the thread's own default stream, to 3 for the first use of the stream in %rax. Handles
// 0 and 1 are the legacy default stream, 2 (CU_STREAM_PER_THREAD) the thread's own. Others are searched by hash.
#define HOTPACK_LOOK_UP                       \
  "imull $-1640531535, %eax, %r11d\n"         \
  "shrl $20, %r11d\n"                         \
  "leaq hotpack_stream_handles(%rip), %r10\n" \
  "cmpq %rax, (%r10,%r11,8)\n jne 3f\n"
#define HOTPACK_LEGACY "cmpq $2, %rax\n jb 1f\n je 2f\n" HOTPACK_LOOK_UP "jmp 1f\n"
#define HOTPACK_OWN "cmpq $1, %rax\n je 1f\n testq $-3, %rax\n je 2f\n" HOTPACK_LOOK_UP "jmp 1f\n"
#define HOTPACK_HOST \
  "cmpl $0, hotpack_host_waits(%rip)\n jne 4f\n leaq 4f(%rip), %r11\n jmp hotpack_host_wait_and_jump\n4:\n"

#define HOTPACK_AT_ARG1 HOTPACK_LOAD_ARG1 HOTPACK_LEGACY
#define HOTPACK_AT_ARG2 HOTPACK_LOAD_ARG2 HOTPACK_LEGACY
#define HOTPACK_AT_ARG3 HOTPACK_LOAD_ARG3 HOTPACK_LEGACY
#define HOTPACK_AT_ARG4 HOTPACK_LOAD_ARG4 HOTPACK_LEGACY
#define HOTPACK_AT_ARG5 HOTPACK_LOAD_ARG5 HOTPACK_LEGACY
#define HOTPACK_AT_ARG6 HOTPACK_LOAD_ARG6 HOTPACK_LEGACY
#define HOTPACK_AT_ARG8 HOTPACK_LOAD_ARG8 HOTPACK_LEGACY
#define HOTPACK_AT_ARG9 HOTPACK_LOAD_ARG9 HOTPACK_LEGACY
#define HOTPACK_AT_CONFIG HOTPACK_LOAD_CONFIG HOTPACK_LEGACY
#define HOTPACK_AT_OWN_ARG1 HOTPACK_LOAD_ARG1 HOTPACK_OWN
#define HOTPACK_AT_OWN_ARG2 HOTPACK_LOAD_ARG2 HOTPACK_OWN
#define HOTPACK_AT_OWN_ARG3 HOTPACK_LOAD_ARG3 HOTPACK_OWN
#define HOTPACK_AT_OWN_ARG4 HOTPACK_LOAD_ARG4 HOTPACK_OWN
#define HOTPACK_AT_OWN_ARG5 HOTPACK_LOAD_ARG5 HOTPACK_OWN
#define HOTPACK_AT_OWN_ARG6 HOTPACK_LOAD_ARG6 HOTPACK_OWN
#define HOTPACK_AT_OWN_ARG8 HOTPACK_LOAD_ARG8 HOTPACK_OWN
#define HOTPACK_AT_OWN_ARG9 HOTPACK_LOAD_ARG9 HOTPACK_OWN
#define HOTPACK_AT_OWN_CONFIG HOTPACK_LOAD_CONFIG HOTPACK_OWN
#define HOTPACK_AT_HOST_ARG1 HOTPACK_HOST HOTPACK_LOAD_ARG1 HOTPACK_LEGACY
#define HOTPACK_AT_OWN_HOST_ARG1 HOTPACK_HOST HOTPACK_LOAD_ARG1 HOTPACK_OWN
#define HOTPACK_AT_HOST_ARG4 HOTPACK_HOST HOTPACK_LOAD_ARG4 HOTPACK_LEGACY
#define HOTPACK_AT_OWN_HOST_ARG4 HOTPACK_HOST HOTPACK_LOAD_ARG4 HOTPACK_OWN
#define HOTPACK_AT_PER_THREAD ""
#define HOTPACK_AT_NONE "jmp 1f\n"

// The pointer first leads to code that binds all hooks and then jumps through it again. With the launch collector
// (launch_notes.h) it leads to hotpack_noted_*, which passes the arguments to hotpack_note_work and goes on. The cell
// then holds the next function and the row of launch_hooks.cc.
#define HOTPACK_WORK_CODE(symbol, base, version, stream, where)  \
  asm(".data\n"                                                  \
      ".balign 8\n"                                              \
      ".globl hotpack_next_" #symbol                             \
      "\n"                                                       \
      ".hidden hotpack_next_" #symbol                            \
      "\n"                                                       \
      ".type hotpack_next_" #symbol                              \
      ", @object\n"                                              \
      ".size hotpack_next_" #symbol                              \
      ", 8\n"                                                    \
      "hotpack_next_" #symbol ": .quad hotpack_unbound_" #symbol \
      "\n"                                                       \
      ".text\n"                                                  \
      "hotpack_unbound_" #symbol                                 \
      ":\n"                                                      \
      " leaq hotpack_next_" #symbol                              \
      "(%rip), %rax\n"                                           \
      " leaq hotpack_unbound_" #symbol                           \
      "(%rip), %r11\n"                                           \
      " jmp hotpack_bind_and_jump\n"                             \
      ".globl " #symbol                                          \
      "\n"                                                       \
      ".type " #symbol                                           \
      ", @function\n"                                            \
      ".balign 16\n" #symbol                                     \
      ":\n"                                                      \
      " endbr64\n" HOTPACK_AT_##where                            \
      "2: cmpl $0, hotpack_per_thread_stream_used(%rip)\n"       \
      " jne 1f\n"                                                \
      " movl $1, hotpack_per_thread_stream_used(%rip)\n"         \
      "1: jmp *hotpack_next_" #symbol                            \
      "(%rip)\n"                                                 \
      "3: leaq hotpack_next_" #symbol                            \
      "(%rip), %r11\n"                                           \
      " jmp hotpack_first_use_and_jump\n"                        \
      ".size " #symbol ", . - " #symbol                          \
      "\n"                                                       \
      ".data\n"                                                  \
      ".balign 8\n"                                              \
      ".globl hotpack_noted_cell_" #symbol                       \
      "\n"                                                       \
      ".hidden hotpack_noted_cell_" #symbol                      \
      "\n"                                                       \
      ".type hotpack_noted_cell_" #symbol                        \
      ", @object\n"                                              \
      ".size hotpack_noted_cell_" #symbol                        \
      ", 16\n"                                                   \
      "hotpack_noted_cell_" #symbol                              \
      ": .quad 0, 0\n"                                           \
      ".text\n"                                                  \
      ".globl hotpack_noted_" #symbol                            \
      "\n"                                                       \
      ".hidden hotpack_noted_" #symbol                           \
      "\n"                                                       \
      ".type hotpack_noted_" #symbol                             \
      ", @function\n"                                            \
      "hotpack_noted_" #symbol                                   \
      ":\n"                                                      \
      " endbr64\n"                                               \
      " leaq hotpack_noted_cell_" #symbol                        \
      "(%rip), %r11\n"                                           \
      " jmp hotpack_note_and_jump\n"                             \
      ".size hotpack_noted_" #symbol ", . - hotpack_noted_" #symbol "\n");

// Entry: %rax the address of the pointer, %r11 its unbound value, the caller's arguments unchanged, %rsp at the return
// address. Returns CUDA_ERROR_NOT_INITIALIZED (3) if there is still no target.
asm(".text\n"
    "hotpack_bind_and_jump:\n"
    " pushq %rdi\n pushq %rsi\n pushq %rdx\n pushq %rcx\n pushq %r8\n pushq %r9\n pushq %rax\n pushq %r11\n"
    " subq $8, %rsp\n"
    " call hotpack_bind_work\n"
    " addq $8, %rsp\n"
    " popq %r11\n popq %rax\n popq %r9\n popq %r8\n popq %rcx\n popq %rdx\n popq %rsi\n popq %rdi\n"
    " cmpq (%rax), %r11\n"
    " je 1f\n"
    " jmp *(%rax)\n"
    "1: movl $3, %eax\n"
    " ret\n");

#define HOTPACK_SAVE " pushq %rdi\n pushq %rsi\n pushq %rdx\n pushq %rcx\n pushq %r8\n pushq %r9\n pushq %r11\n"
#define HOTPACK_RESTORE " popq %r11\n popq %r9\n popq %r8\n popq %rcx\n popq %rdx\n popq %rsi\n popq %rdi\n"

// Entry: %rax the stream; %r11 the address of the pointer to jump through, or the address to go on at. None of the
// watched functions takes floating-point arguments.
asm(".text\n"
    "hotpack_first_use_and_jump:\n" HOTPACK_SAVE
    " movq %rax, %rdi\n"
    " call hotpack_first_use\n" HOTPACK_RESTORE
    " jmp *(%r11)\n"
    "hotpack_host_wait_and_jump:\n" HOTPACK_SAVE " call hotpack_first_host_wait\n" HOTPACK_RESTORE " jmp *%r11\n");

// Entry: %r11 the address of the cell. Pushes the array of the arguments in registers, the first one lowest. The
// seventh argument is behind it and the return address.
asm(".text\n"
    "hotpack_note_and_jump:\n"
    " pushq %r9\n pushq %r8\n pushq %rcx\n pushq %rdx\n pushq %rsi\n pushq %rdi\n pushq %r11\n"
    " movq 8(%r11), %rdi\n"
    " leaq 8(%rsp), %rsi\n"
    " leaq 64(%rsp), %rdx\n"
    " call hotpack_note_work\n"
    " popq %r11\n popq %rdi\n popq %rsi\n popq %rdx\n popq %rcx\n popq %r8\n popq %r9\n"
    " jmp *(%r11)\n");

HOTPACK_WORK(HOTPACK_WORK_CODE)
