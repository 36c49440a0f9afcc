/*
 * section.c: restartable sections of the simulated machine. Instrumented, unlike its neighbours: each access is a step.
 * Instead of restarting a section, others wait for it: the schedules in which it begins later are explored too.
 */
#include "hal/section.h"

#define LABHAL_MOST_SECTIONS 4

static volatile ULONG LabhalInSection[LABHAL_MOST_SECTIONS];

VOID HalRestartSections(VOID)
{
    HalBarrierAllThreads();
    for (ULONG Number = 0; Number < LABHAL_MOST_SECTIONS && HalSectionsOffered(); Number++) {
        /* acquire: what the section has stored */
        while (__atomic_load_n(&LabhalInSection[Number], __ATOMIC_ACQUIRE)) {
        }
    }
}

BOOLEAN HalSimulateSection(PVOID First, ULONG Number, const volatile ULONG *Closed, LONG_PTR Addend)
{
    ULONG Processor = HalDispatch.CurrentProcessor();
    BOOLEAN Done = FALSE;

    if (Processor >= Number || Processor >= LABHAL_MOST_SECTIONS) {
        return FALSE;
    }
    /* relaxed, all: a section orders nothing by itself, HalRestartSections does */
    __atomic_store_n(&LabhalInSection[Processor], TRUE, __ATOMIC_RELAXED);
    if (!__atomic_load_n(Closed, __ATOMIC_RELAXED)) {
        volatile LONG_PTR *Word = (volatile LONG_PTR *)((PUCHAR)First + ((SIZE_T)Processor << HAL_SECTION_SLOT_SHIFT));
        LONG_PTR Value = __atomic_load_n(Word, __ATOMIC_RELAXED);

        /* release: as on a processor that keeps stores in order, the only kind that has sections */
        __atomic_store_n(Word, Value + Addend, __ATOMIC_RELEASE);
        Done = TRUE;
    }
    __atomic_store_n(&LabhalInSection[Processor], FALSE, __ATOMIC_RELEASE);
    return Done;
}
