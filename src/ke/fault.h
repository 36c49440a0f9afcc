/*
 * fault.h: allocations that fail on purpose.
 *
 * A round fails one allocation: the first one whose call stack has not failed before. A stack is known by a number that
 * is made of the modules and offsets of its innermost frames, so it is the same in every run of the same program. Rounds
 * are counted by VfNextFault, or with INTERLOCK_FAULTS a round is a run of the program: then the file has the stacks that
 * have failed in earlier runs. A stack is written to it before its allocation fails: a run that crashes has left its note.
 *
 *     fault RUN STACK innermost < caller < ...
 *     leak RUN BLOCKS
 *
 * `interlock faults` adds lines of its own: how a run ended. With INTERLOCK_FAULTS_RUN several processes are one run:
 * none of them fails anything if another one has. INTERLOCK_FAULTS_ONLY fails this stack alone, each time.
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
