/*
 * processend.h: what the library frees when the process ends normally (main returns, or exit), so that memcheck reports
 * only the program's leaks (LeakSanitizer checks earlier, before destructors). On Windows the kernel closes a process's
 * handles when it ends.
 *
 * 1. Destructors with these priorities run after those of the program, in this order: handles are closed (ob), then packets
 *    are freed (nt), then the process leaves the worlds (wo). Afterwards everything is as before the first call, and a late
 *    call from another library's destructor works.
 * 2. Nothing is freed while another thread of the program lives: it may use any of it until the process has ended.
 * 3. The library's own threads keep running. A program may close handles at any time while they run. Tables that they
 *    may read without a lock are freed only if no such thread was started.
 * 4. A forked child frees nothing: its handles are copies, and what they name in shared worlds is its parent's. _exit,
 *    quick_exit, TerminateProcess and bugchecks free nothing either.
 */
#ifndef INTERLOCK_PROCESSEND_H
#define INTERLOCK_PROCESSEND_H

#include <interlock/ke.h>

#define KI_END_OBJECTS 103
#define KI_END_PACKETS 102
#define KI_END_WORLDS 101

/* Rules 2 and 4; also, whether the caller may use the library where it calls exit. */
BOOLEAN KiProcessEndsAlone(VOID);
BOOLEAN KiHasOwnThreads(VOID); /* rule 3 */

#endif
