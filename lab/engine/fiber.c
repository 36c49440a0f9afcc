/*
 * fiber.c: the context switch. A switch saves only what the calling convention preserves. On machines other than
 * these two, or on request (LAB_PORTABLE_FIBERS), it uses ucontext: correct, and many times slower.
 */
#include "engine.h"

#include <string.h>

#define CLEARED_BYTES 16384
#define LITTLE_BYTES  1024

/* In assembly, without a prologue: not every compiler has naked functions. */
#define SWITCH_BEGIN                                                                                                   \
    ".text\n\t.p2align 4\n\t.globl lab_fiber_switch\n\t.hidden lab_fiber_switch\n\t"                                   \
    ".type lab_fiber_switch, %function\nlab_fiber_switch:\n\t"
#define SWITCH_END ".size lab_fiber_switch, . - lab_fiber_switch\n"

/* Clears what deeper calls have left on the stack of the running fiber: most of them need little of it, the unwinder much. */
static __attribute__((noinline)) void clear_little(void)
{
    char room[LITTLE_BYTES];

    memset(room, 0, sizeof(room));
    __asm__ volatile("" : : "r"(room) : "memory");
}

static __attribute__((noinline)) void clear_much(void)
{
    char room[CLEARED_BYTES];

    memset(room, 0, sizeof(room));
    __asm__ volatile("" : : "r"(room) : "memory");
}

void lab_fiber_clear_stack(void)
{
    lab_thread *t = lab->current;

    if (t == NULL || (char *)__builtin_frame_address(0) - t->stack < 2 * CLEARED_BYTES)
        return;
    if (t->unwound)
        clear_much();
    else
        clear_little();
    t->unwound = false;
}

#if defined(__x86_64__)

/*
 * Every function of the explored program that is compiled with -mfentry calls this before its first instruction. It clears the room
 * for the function's frame, in which earlier calls have left values: slots that the function has not written yet would make
 * states differ in which nothing differs (states.c). r11 is neither an argument nor preserved by calls.
 */
__asm__(".text\n\t.p2align 4\n\t.globl __fentry__\n\t.hidden __fentry__\n\t.type __fentry__, %function\n__fentry__:\n\t"
        "leaq -512(%rsp), %r11\n"
        "1:\tmovq $0, (%r11)\n\t"
        "movq $0, 8(%r11)\n\t"
        "movq $0, 16(%r11)\n\t"
        "movq $0, 24(%r11)\n\t"
        "movq $0, 32(%r11)\n\t"
        "movq $0, 40(%r11)\n\t"
        "movq $0, 48(%r11)\n\t"
        "movq $0, 56(%r11)\n\t"
        "addq $64, %r11\n\t"
        "cmpq %rsp, %r11\n\t"
        "jb 1b\n\t"
        "ret\n\t.size __fentry__, . - __fentry__\n");

#define CALL    0xe8 /* of an address relative to the next instruction */
#define PADDING 0x67 /* the linker's, before it */

bool lab_fiber_clears_frames(uintptr_t function)
{
    extern void __fentry__(void);
    const uint8_t *code = (const uint8_t *)function;
    int32_t distance;

    code += *code == PADDING;
    memcpy(&distance, code + 1, sizeof(distance));
    return *code == CALL && (uintptr_t)(code + 1 + sizeof(distance)) + (uintptr_t)(intptr_t)distance == (uintptr_t)__fentry__;
}

#else

bool lab_fiber_clears_frames(uintptr_t function)
{
    (void)function;
    return false;
}

#endif

#if defined(__x86_64__) && !defined(LAB_PORTABLE_FIBERS)

__asm__(SWITCH_BEGIN "pushq %rbp\n\t"
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
                     "ret\n\t" SWITCH_END);

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

#elif defined(__aarch64__) && !defined(LAB_PORTABLE_FIBERS)

__asm__(SWITCH_BEGIN "sub sp, sp, #160\n\t"
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
                     "ret\n\t" SWITCH_END);

void lab_fiber_prepare(lab_thread *fiber, void (*entry)(void))
{
    uintptr_t *top = (uintptr_t *)(fiber->stack + STACK_SIZE) - 22;

    for (int i = 0; i < 22; i++)
        top[i] = 0;
    top[11] = (uintptr_t)entry;
    fiber->sp = top;
}

#else

#include <ucontext.h>

#define ROOM_ABOVE 4096 /* for the first frame */

/* The context is in the frame of the switch: it is restored with the stack. */
__attribute__((noinline)) void lab_fiber_switch(void **save, void *restore)
{
    ucontext_t own;

    *save = &own;
    swapcontext(&own, restore);
}

void lab_fiber_prepare(lab_thread *fiber, void (*entry)(void))
{
    ucontext_t *context = (ucontext_t *)(fiber->stack + STACK_SIZE - ROOM_ABOVE - sizeof(ucontext_t));

    context = (ucontext_t *)((uintptr_t)context & ~63ul);
    getcontext(context);
    context->uc_stack.ss_sp = fiber->stack;
    context->uc_stack.ss_size = STACK_SIZE;
    context->uc_link = NULL;
    makecontext(context, entry, 0);
    fiber->sp = context;
}

#endif
