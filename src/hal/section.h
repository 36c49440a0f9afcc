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

#include <interlock/interlocked.h>

#include "hal.h"

#define HAL_SECTIONS INTERLOCK_SECTIONS
#define HAL_SECTION_SLOT_SHIFT INTERLOCK_SECTION_SLOT_SHIFT

BOOLEAN HalSectionsOffered(VOID); /* known from the start */
VOID HalRestartSections(VOID);    /* a barrier on all threads, too */
/* Called by code compiled without sections: the explorer's machine has an instrumented one. */
BOOLEAN HalSimulateSection(PVOID First, ULONG Number, const volatile ULONG *Closed, LONG_PTR Addend);

/* Where the C library has registered the area of a thread, from the thread pointer. */
extern LONG_PTR HalSectionOffset __attribute__((visibility("hidden")));

#define HALP_SECTION_SIZE 20 /* of the area's first version */

/* The number of the processor, or below 0: the thread has no area. Only if sections are offered. */
FORCEINLINE LONG HalReadSectionProcessor(VOID)
{
    LONG Number = -1;
#if HAL_SECTIONS
    __asm__ volatile("movl %%fs:%c[processor](%[area]), %[number]"
                     : [number] "=r"(Number)
                     : [area] "r"(HalSectionOffset), [processor] "i"(INTERLOCK_SECTION_PROCESSOR));
#endif
    return Number;
}

/* InterlockAddInSection, for this thread. Only if sections are offered. */
FORCEINLINE BOOLEAN HalAddInSection(PVOID First, ULONG Number, const volatile ULONG *Closed, LONG_PTR Addend)
{
#if HAL_SECTIONS
    return InterlockAddInSection(HalSectionOffset, First, Number, Closed, Addend);
#else
    return HalSimulateSection(First, Number, Closed, Addend);
#endif
}

#endif
