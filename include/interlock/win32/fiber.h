/*
 * win32/fiber.h: kernel32's fibers. Part of win32.h.
 *
 * A fiber is a stack and registers that a thread runs, one at a time. What the library keeps for a thread stays with the
 * thread: its waits, its APCs, its thread-local storage and last error, the mutexes and critical sections that it owns. A
 * fiber that moves to another thread waits and owns as that thread. Its frames of __try and its fiber-local storage move
 * with it.
 */
#ifndef INTERLOCK_WIN32_FIBER_H
#define INTERLOCK_WIN32_FIBER_H

#include <interlock/win32/base.h>

INTERLOCK_BEGIN

/* Fibers. */

#define FIBER_FLAG_FLOAT_SWITCH 0x1

typedef VOID(WINAPI *PFIBER_START_ROUTINE)(LPVOID lpFiberParameter);
typedef PFIBER_START_ROUTINE LPFIBER_START_ROUTINE;

/* Makes the calling thread a fiber, which it needs before it switches to one, and returns it; NULL on failure. Fails with
   ERROR_ALREADY_FIBER. Since NT 3.51, Server 2003. */
WINBASEAPI LPVOID WINAPI ConvertThreadToFiber(LPVOID lpParameter);
WINBASEAPI LPVOID WINAPI ConvertThreadToFiberEx(LPVOID lpParameter, DWORD dwFlags);

/* Makes the calling fiber a thread again and frees its record. The stack on which it runs stays in use until the thread
   ends. Fails with ERROR_ALREADY_THREAD. Since XP. */
WINBASEAPI BOOL WINAPI ConvertFiberToThread(VOID);

/* Creates a fiber with a stack of its own; NULL on failure. It runs when a thread switches to it. When its routine
   returns, the thread ends that runs it, with code 1. Differs: the stack has at least 256 KB and is committed by use, with a guard
   page. Since NT 3.51, Server 2003. */
WINBASEAPI LPVOID WINAPI CreateFiber(SIZE_T dwStackSize, LPFIBER_START_ROUTINE lpStartAddress, LPVOID lpParameter);
WINBASEAPI LPVOID WINAPI CreateFiberEx(SIZE_T dwStackCommitSize, SIZE_T dwStackReserveSize, DWORD dwFlags,
                                       LPFIBER_START_ROUTINE lpStartAddress, LPVOID lpParameter);

/* Leaves the calling fiber where it is and runs another one. Differs: STATUS_INVALID_PARAMETER is raised if the caller is
   no fiber or the other one runs on another thread; not for use inside an APC or a callback of the pool. Since NT 3.51. */
WINBASEAPI VOID WINAPI SwitchToFiber(LPVOID lpFiber);

/* Calls back for the fiber-local values of a fiber, and frees it with its stack. The current fiber ends its thread.
   Differs: STATUS_INVALID_PARAMETER is raised if the fiber runs on another thread. Since NT 3.51. */
WINBASEAPI VOID WINAPI DeleteFiber(LPVOID lpFiber);

/* Returns the current fiber. Differs: NULL for a thread that is none. Since NT 3.51. */
WINBASEAPI PVOID GetCurrentFiber(VOID);

/* Returns the parameter of the current fiber. Since NT 3.51. */
WINBASEAPI PVOID GetFiberData(VOID);

/* Returns whether the calling thread runs a fiber. Since Vista. */
WINBASEAPI BOOL WINAPI IsThreadAFiber(VOID);

INTERLOCK_END

#endif
