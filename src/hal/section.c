/* section.c: restartable sections. Theory in section.h. */
#include "section.h"

#include "halp.h"

#include <stddef.h>

/* The kernel's, of which headers of older hosts know nothing. */
#define MEMBARRIER_RSEQ (1 << 7)
#define MEMBARRIER_REGISTER_RSEQ (1 << 8)

/* Of the C library, since glibc 2.35; the size is 0 where it could not register the area. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

LONG_PTR HalSectionOffset;
static BOOLEAN HalpSectionsOffered;

static BOOLEAN HalpRestart(VOID)
{
    return HalpCall(SYS_membarrier, MEMBARRIER_RSEQ, 0, 0) == 0;
}

static BOOLEAN HalpRegisterAndRestart(VOID)
{
    HalpCall(SYS_membarrier, MEMBARRIER_REGISTER_RSEQ, 0, 0);
    return HalpRestart();
}

VOID HalpInitializeSections(VOID)
{
    if (HAL_SECTIONS && &__rseq_size != NULL && __rseq_size >= HALP_SECTION_SIZE && HalBarrierAllThreads() &&
        HalpRegisterAndRestart()) {
        HalSectionOffset = __rseq_offset;
        HalpSectionsOffered = TRUE;
    }
}

BOOLEAN HalSectionsOffered(VOID)
{
    return HalpSectionsOffered;
}

/* Refused by a sandbox that the process entered later: a section takes nanoseconds, and the host restarts that of a
   thread which does not run. */
VOID HalRestartSections(VOID)
{
    if (HalpSectionsOffered && !HalpRestart() && !HalpRegisterAndRestart()) {
        HalpOutwaitStores();
    }
    HalBarrierAllThreads();
}

BOOLEAN HalSimulateSection(PVOID First, ULONG Number, const volatile ULONG *Closed, LONG_PTR Addend)
{
    UNREFERENCED_PARAMETER(First);
    UNREFERENCED_PARAMETER(Number);
    UNREFERENCED_PARAMETER(Closed);
    UNREFERENCED_PARAMETER(Addend);
    return FALSE;
}
