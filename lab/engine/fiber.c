/* fiber.c: the context switch. A switch saves what the calling convention preserves, nothing else. */
#include "engine.h"

#if defined(__x86_64__)

__attribute__((naked, noinline)) void lab_fiber_switch(void **save, void *restore)
{
    (void)save;
    (void)restore;
    __asm__("pushq %rbp\n\t"
            "pushq %rbx\n\t"
            "pushq %r12\n\t"
            "pushq %r13\n\t"
            "pushq %r14\n\t"
            "pushq %r15\n\t"
            "movq %rsp, (%rdi)\n\t"
            "movq %rsi, %rsp\n\t"
            "popq %r15\n\t"
            "popq %r14\n\t"
            "popq %r13\n\t"
            "popq %r12\n\t"
            "popq %rbx\n\t"
            "popq %rbp\n\t"
            "ret");
}

void lab_fiber_prepare(lab_thread *fiber, void (*entry)(void))
{
    uintptr_t *top = (uintptr_t *)(fiber->stack + STACK_SIZE);

    *--top = 0; /* the end of every backtrace, and the alignment a call leaves */
    *--top = 0;
    *--top = 0;
    *--top = (uintptr_t)entry;
    for (int i = 0; i < 6; i++)
        *--top = 0;
    fiber->sp = top;
}

#elif defined(__aarch64__)

__attribute__((naked, noinline)) void lab_fiber_switch(void **save, void *restore)
{
    (void)save;
    (void)restore;
    __asm__("sub sp, sp, #160\n\t"
            "stp x19, x20, [sp, #0]\n\t"
            "stp x21, x22, [sp, #16]\n\t"
            "stp x23, x24, [sp, #32]\n\t"
            "stp x25, x26, [sp, #48]\n\t"
            "stp x27, x28, [sp, #64]\n\t"
            "stp x29, x30, [sp, #80]\n\t"
            "stp d8, d9, [sp, #96]\n\t"
            "stp d10, d11, [sp, #112]\n\t"
            "stp d12, d13, [sp, #128]\n\t"
            "stp d14, d15, [sp, #144]\n\t"
            "mov x9, sp\n\t"
            "str x9, [x0]\n\t"
            "mov sp, x1\n\t"
            "ldp x19, x20, [sp, #0]\n\t"
            "ldp x21, x22, [sp, #16]\n\t"
            "ldp x23, x24, [sp, #32]\n\t"
            "ldp x25, x26, [sp, #48]\n\t"
            "ldp x27, x28, [sp, #64]\n\t"
            "ldp x29, x30, [sp, #80]\n\t"
            "ldp d8, d9, [sp, #96]\n\t"
            "ldp d10, d11, [sp, #112]\n\t"
            "ldp d12, d13, [sp, #128]\n\t"
            "ldp d14, d15, [sp, #144]\n\t"
            "add sp, sp, #160\n\t"
            "ret");
}

void lab_fiber_prepare(lab_thread *fiber, void (*entry)(void))
{
    uintptr_t *top = (uintptr_t *)(fiber->stack + STACK_SIZE) - 22;

    for (int i = 0; i < 22; i++)
        top[i] = 0;
    top[11] = (uintptr_t)entry;
    fiber->sp = top;
}

#else
#error The lab switches contexts on x86-64 and aarch64 only.
#endif
