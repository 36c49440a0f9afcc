/* context.h: where a thread was when the host interrupted it. */
#ifndef INTERLOCK_CONTEXT_H
#define INTERLOCK_CONTEXT_H

#include <ucontext.h>

#if defined(__x86_64__)
#define HALP_CONTEXT_INSTRUCTION(Context) ((Context)->uc_mcontext.gregs[REG_RIP])
#elif defined(__aarch64__)
#define HALP_CONTEXT_INSTRUCTION(Context) ((Context)->uc_mcontext.pc)
#elif defined(__riscv) && __riscv_xlen == 64
#define HALP_CONTEXT_INSTRUCTION(Context) ((Context)->uc_mcontext.__gregs[REG_PC])
#else
#error "context.h does not know where this machine keeps the instruction's address."
#endif

#endif
