/*
 * fault.h: allocations that fail on purpose.
 *
 * A round fails one allocation: the first one whose call stack has not failed before. A stack is identified by a number
 * computed from the modules and offsets of its innermost frames, so it is the same in every run of the same program.
 * VfNextFault begins a round. With INTERLOCK_FAULTS a round is a run of the program: the file lists the stacks that
 * failed in earlier runs. A stack is written to the file before its allocation fails, so a run that crashes has
 * recorded it.
 *
 *     fault RUN STACK innermost < caller < ...
 *     leak RUN BLOCKS
 *
 * `interlock faults` adds lines of its own: how a run ended. With INTERLOCK_FAULTS_RUN several processes form one run,
 * in which one allocation fails. INTERLOCK_FAULTS_ONLY fails only this stack, each time.
 */
#ifndef INTERLOCK_FAULT_H
#define INTERLOCK_FAULT_H

#include "ki.h"

#ifdef INTERLOCK_HOST
VOID KiInitializeFaults(VOID); /* after the library's own allocations */
VOID KiNoteLeaks(ULONG64 Blocks);
#else
#define KiInitializeFaults() ((VOID)0)
#endif

#endif
