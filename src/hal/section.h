/*
 * section.h: restartable sections: an addition to a word of the processor on which the thread runs, without a locked
 * operation (rseq(2), which the C library registers for every thread).
 *
 * The host restarts a section whose thread it has preempted, migrated or interrupted with a signal. So only one thread
 * at a time is inside a section of one processor, and the instruction that ends the section, a plain addition in
 * memory, needs no lock. Others may change the word once they have closed the sections: *Closed is read inside, and
 * HalRestartSections restarts every section that may have read it before.
 */
#ifndef INTERLOCK_HAL_SECTION_H
#define INTERLOCK_HAL_SECTION_H

#include "hal.h"

/* Thread sanitizers see no instruction of a section, so they would report a race for what a section orders. */
#if defined(__SANITIZE_THREAD__)
#define HAL_SECTIONS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAL_SECTIONS 0
#endif
#endif
#if !defined(HAL_SECTIONS) && defined(__x86_64__)
#define HAL_SECTIONS 1
#elif !defined(HAL_SECTIONS)
#define HAL_SECTIONS 0
#endif

#define HAL_SECTION_SLOT_SHIFT 6

BOOLEAN HalSectionsOffered(VOID); /* known from the start */
VOID HalRestartSections(VOID);    /* a barrier on all threads, too */
/* For code compiled without sections: the explorer's machine has an instrumented one. */
BOOLEAN HalSimulateSection(PVOID First, ULONG Number, const volatile ULONG *Closed, LONG_PTR Addend);

/* Where the C library has registered the area of a thread, from the thread pointer. */
extern LONG_PTR HalSectionOffset __attribute__((visibility("hidden")));

/* Offsets of the area. The host requires its signature before the place where a section restarts, as an instruction
   that traps. */
#define HALP_SECTION_PROCESSOR 4
#define HALP_SECTION_CURRENT 8
#define HALP_SECTION_SIZE 20 /* of the first version */
#define HALP_SECTION_SIGNATURE ".byte 0x0f, 0xb9, 0x3d\n\t.long 0x53053053\n\t"

/* The number of the processor, or below 0: the thread has no area. Only if sections are offered. */
FORCEINLINE LONG HalReadSectionProcessor(VOID)
{
    LONG Number = -1;
#if HAL_SECTIONS
    __asm__ volatile("movl %%fs:%c[processor](%[area]), %[number]"
                     : [number] "=r"(Number)
                     : [area] "r"(HalSectionOffset), [processor] "i"(HALP_SECTION_PROCESSOR));
#endif
    return Number;
}

/*
 * Adds to the word of the slot of the current processor. FALSE: *Closed is not 0, or the processor is beyond Number. Orders
 * as a release store; a load that follows may come before it, unless HalRestartSections comes in between. Only if sections
 * are offered. The addition ends the section: a restarted section has no effect. The area's pointer to the section is
 * cleared, because this code may be unmapped later.
 */
FORCEINLINE BOOLEAN HalAddInSection(PVOID First, ULONG Number, const volatile ULONG *Closed, LONG_PTR Addend)
{
#if HAL_SECTIONS
    BOOLEAN Done;
    ULONG64 Scratch;
    __asm__ volatile(".pushsection __rseq_cs, \"aw\"\n\t"
                     ".balign 32\n\t"
                     "3:\n\t"
                     ".long 0, 0\n\t"
                     ".quad 1f, 2f - 1f, 4f\n\t"
                     ".popsection\n\t"
                     ".pushsection __rseq_failure, \"ax\"\n\t"
                     HALP_SECTION_SIGNATURE
                     "4:\n\t"
                     "jmp 5f\n\t"
                     ".popsection\n"
                     "5:\n\t"
                     "leaq 3b(%%rip), %[scratch]\n\t"
                     "movq %[scratch], %%fs:%c[current](%[area])\n"
                     "1:\n\t"
                     "xorl %k[done], %k[done]\n\t"
                     "cmpl $0, %[closed]\n\t"
                     "jne 2f\n\t"
                     "movl %%fs:%c[processor](%[area]), %k[scratch]\n\t"
                     "cmpl %[number], %k[scratch]\n\t"
                     "jae 2f\n\t"
                     "shlq %[shift], %[scratch]\n\t"
                     "incl %k[done]\n\t"
                     "addq %[addend], (%[first], %[scratch])\n"
                     "2:\n\t"
                     "movq $0, %%fs:%c[current](%[area])\n\t"
                     : [done] "=&r"(Done), [scratch] "=&r"(Scratch)
                     : [closed] "m"(*Closed), [area] "r"(HalSectionOffset), [number] "rm"(Number), [first] "r"(First),
                       [addend] "er"(Addend), [shift] "i"(HAL_SECTION_SLOT_SHIFT),
                       [processor] "i"(HALP_SECTION_PROCESSOR), [current] "i"(HALP_SECTION_CURRENT)
                     : "cc", "memory");
    return Done;
#else
    return HalSimulateSection(First, Number, Closed, Addend);
#endif
}

#endif
