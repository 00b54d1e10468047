// The watched functions: each notes the first use of a per-thread default stream and jumps to the next definition with
// every register and the stack as they came, so no signature is needed and the cost is a compare and a jump.
//
// x86-64 System V calling convention only; another machine needs its own HOTPACK_* fragments.
#include <cuda.h>

#include <cstddef>

#include "preload/work_list.h"

#if !defined(__x86_64__)
#error "preload/work_hooks.cc and preload/dl_hooks.cc are written for x86-64"
#endif

// Nonzero once any per-thread default stream has been used. Written by the code below without a lock: it goes from 0 to
// 1 once. See StreamOrder for what it means.
extern "C" {
__attribute__((visibility("hidden"))) int hotpack_per_thread_stream_used = 0;
}

static_assert(offsetof(CUlaunchConfig, hStream) == 32);

// Where the stream is at entry: 8(%rsp) is the seventh argument.
#define HOTPACK_AT_ARG1 "cmpq $2, %rdi\n jne 1f\n"
#define HOTPACK_AT_ARG2 "cmpq $2, %rsi\n jne 1f\n"
#define HOTPACK_AT_ARG4 "cmpq $2, %rcx\n jne 1f\n"
#define HOTPACK_AT_ARG5 "cmpq $2, %r8\n jne 1f\n"
#define HOTPACK_AT_ARG6 "cmpq $2, %r9\n jne 1f\n"
#define HOTPACK_AT_ARG8 "cmpq $2, 16(%rsp)\n jne 1f\n"
#define HOTPACK_AT_ARG9 "cmpq $2, 24(%rsp)\n jne 1f\n"
#define HOTPACK_AT_CONFIG "testq %rdi, %rdi\n je 1f\n cmpq $2, 32(%rdi)\n jne 1f\n"
#define HOTPACK_AT_PER_THREAD ""

// The pointer starts at a piece of code that binds all hooks and then jumps through it again.
#define HOTPACK_WORK_CODE(symbol, base, version, stream, where)      \
  asm(".data\n"                                                      \
      ".balign 8\n"                                                  \
      ".globl hotpack_next_" #symbol "\n"                            \
      ".hidden hotpack_next_" #symbol "\n"                           \
      ".type hotpack_next_" #symbol ", @object\n"                    \
      ".size hotpack_next_" #symbol ", 8\n"                          \
      "hotpack_next_" #symbol ": .quad hotpack_unbound_" #symbol "\n" \
      ".text\n"                                                      \
      "hotpack_unbound_" #symbol ":\n"                               \
      " leaq hotpack_next_" #symbol "(%rip), %rax\n"                 \
      " leaq hotpack_unbound_" #symbol "(%rip), %r11\n"              \
      " jmp hotpack_bind_and_jump\n"                                 \
      ".globl " #symbol "\n"                                         \
      ".type " #symbol ", @function\n"                               \
      ".balign 16\n" #symbol ":\n"                                   \
      " endbr64\n" HOTPACK_AT_##where                                \
      " cmpl $0, hotpack_per_thread_stream_used(%rip)\n"             \
      " jne 1f\n"                                                    \
      " movl $1, hotpack_per_thread_stream_used(%rip)\n"             \
      "1: jmp *hotpack_next_" #symbol "(%rip)\n"                     \
      ".size " #symbol ", . - " #symbol "\n");

// Entry: %rax the address of the pointer, %r11 its unbound value, the caller's arguments untouched, %rsp at the return
// address. Answers CUDA_ERROR_NOT_INITIALIZED (3) if there is still nothing to jump to.
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

HOTPACK_WORK(HOTPACK_WORK_CODE)
